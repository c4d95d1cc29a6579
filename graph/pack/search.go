package pack

// Result is all that is known about copies of a host: what limits them, and the rings and trees that come near it.
type Result struct {
	Hosts, Ranks int
	Limit        Limit
	Rings        RingPacking
	Gather       TreePacking
	Scatter      TreePacking // on the network turned round: its edges lead towards the roots
	Turned       *Network    // that network; nil where both directions are alike and Scatter is Gather
}

// Search finds the rings and trees of so many copies of a host, both at the same time.
func Search(n *Network, hosts int, e Effort) Result {
	r := Result{Hosts: hosts, Ranks: hosts * len(n.GPUs), Limit: Bound(n, hosts)}
	limit := r.Limit
	done := make(chan RingPacking, 1)
	go func() { done <- Rings(n, hosts, limit, e) }()
	r.trees(n, e)
	r.Rings = <-done
	return r
}

func (r *Result) trees(n *Network, e Effort) {
	trees := e
	trees.Slack = max(e.Slack, treeSlack)
	r.Gather = Trees(n, r.Hosts, r.Limit, trees)
	if n.Duplex() {
		r.Scatter = r.Gather
		return
	}
	r.Turned = n.Reversed()
	r.Scatter = Trees(r.Turned, r.Hosts, Bound(r.Turned, r.Hosts), trees)
}

// treeSlack is near enough for trees: the last percent takes as long as all before.
const treeSlack = 0.01

// AllGather is the bus bandwidth of the better plan, and whether that is the rings, which have it at no more than a thousandth less.
func (r *Result) AllGather() (bus float64, rings bool) { return better(r.Rings.Bus, r.Gather.Bus) }

// ReduceScatter likewise.
func (r *Result) ReduceScatter() (bus float64, rings bool) { return better(r.Rings.Bus, r.Scatter.Bus) }

// AllReduce likewise; else it is a reduce-scatter and then an all-gather.
func (r *Result) AllReduce() (bus float64, rings bool) {
	gather, _ := r.AllGather()
	scatter, _ := r.ReduceScatter()
	return better(r.Rings.Bus, inTurn(gather, scatter))
}

// TreeBus is the bus bandwidth of an all-reduce over trees alone.
func (r *Result) TreeBus() float64 { return inTurn(r.Gather.Bus, r.Scatter.Bus) }

func better(rings, other float64) (float64, bool) {
	if rings >= 0.999*other {
		return rings, true
	}
	return other, false
}

func inTurn(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return 2 / (1/a + 1/b)
}
