package pack

import "slices"

// pipe is a link, or links one after the other between which nothing branches off, as trees see them.
type pipe struct {
	from, to int
	hold     float64
	links    []int // of the Network; none at the fabric
}

// plain is a host without what cannot matter to trees: leaves that are no GPUs are gone and chains are one pipe. The fabric, where
// there is one, is the node after the host's.
type plain struct {
	nodes, fabric int // fabric -1: traffic stays inside
	gpus          []int
	pipes         []pipe
	out           [][]int32 // pipes from each node
}

func newPlain(n *Network, hosts int) *plain {
	p := &plain{nodes: n.Nodes + 1, fabric: -1, gpus: n.GPUs}
	p.widest(n)
	if (hosts > 1 || n.Cut) && len(n.Nets) > 0 {
		p.fabric = n.Nodes
		for _, port := range n.Nets {
			p.pipes = append(p.pipes, pipe{port, p.fabric, 1e9, nil}, pipe{p.fabric, port, 1e9, nil})
		}
	}
	for p.simplify() {
	}
	p.out = make([][]int32, p.nodes)
	for k, q := range p.pipes {
		p.out[q.from] = append(p.out[q.from], int32(k))
	}
	return p
}

// widest takes the links, of parallel ones the widest: a route names nodes, and cannot say which of them it means.
func (p *plain) widest(n *Network) {
	best := map[[2]int]int{}
	for k, l := range n.Links {
		ends := [2]int{l.From, l.To}
		if at, ok := best[ends]; !ok {
			best[ends] = len(p.pipes)
			p.pipes = append(p.pipes, pipe{l.From, l.To, l.Cap, []int{k}})
		} else if p.pipes[at].hold < l.Cap {
			p.pipes[at] = pipe{l.From, l.To, l.Cap, []int{k}}
		}
	}
}

// simplify takes out all nodes that have no more than two neighbours and no say in where traffic goes.
func (p *plain) simplify() bool {
	fixed := make([]bool, p.nodes)
	for _, g := range p.gpus {
		fixed[g] = true
	}
	if p.fabric >= 0 {
		fixed[p.fabric] = true
	}
	for node := range p.nodes {
		if !fixed[node] && p.takeOut(node) {
			return true
		}
	}
	return false
}

func (p *plain) takeOut(node int) bool {
	var in, out []pipe
	for _, q := range p.pipes {
		if q.to == node {
			in = append(in, q)
		}
		if q.from == node {
			out = append(out, q)
		}
	}
	if len(in)+len(out) == 0 || len(in) > 2 || len(out) > 2 {
		return false
	}
	var through []pipe
	for _, a := range in {
		for _, b := range out {
			if a.from != b.to {
				links := append(slices.Clone(a.links), b.links...)
				through = append(through, pipe{a.from, b.to, min(a.hold, b.hold), links})
			}
		}
	}
	for a, q := range through { // a pipe that two ways share has to stay one
		for _, r := range through[:a] {
			if q.from == r.from || q.to == r.to {
				return false
			}
		}
	}
	p.pipes = slices.DeleteFunc(p.pipes, func(q pipe) bool { return q.from == node || q.to == node })
	p.pipes = append(p.pipes, through...)
	return true
}

// ways are the cheapest ways from one node to all others. They do not lead through GPUs: a tree has its own edges there.
type ways struct {
	cost []float64
	by   []int32 // the last pipe on the way to each node, -1 at the start
	done []bool
}

// from finds them one node after the other, the nearest first (E. W. Dijkstra, 1959).
func (w *ways) from(p *plain, start int, price []float64) {
	if w.cost == nil {
		w.cost, w.by, w.done = make([]float64, p.nodes), make([]int32, p.nodes), make([]bool, p.nodes)
	}
	for k := range w.cost {
		w.cost[k], w.by[k], w.done[k] = far, -1, false
	}
	for _, g := range p.gpus {
		w.done[g] = true
	}
	w.cost[start] = 0
	for at := start; at >= 0; at = w.nearest() {
		w.done[at] = true
		for _, k := range p.out[at] {
			if to := p.pipes[k].to; to != start && w.cost[at]+price[k] < w.cost[to] {
				w.cost[to], w.by[to] = w.cost[at]+price[k], k
			}
		}
	}
}

func (w *ways) nearest() int {
	node, least := -1, float64(far)
	for k, c := range w.cost {
		if !w.done[k] && c < least {
			node, least = k, c
		}
	}
	return node
}

// pipes are the pipes on the way to a node, in their order.
func (w *ways) pipes(p *plain, to int) []int32 {
	var back []int32
	for k := w.by[to]; k >= 0; k = w.by[p.pipes[k].from] {
		back = append(back, k)
	}
	slices.Reverse(back)
	return back
}
