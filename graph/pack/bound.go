package pack

import (
	"fmt"
	"math"

	"hccl.dev/hccl/internal/plural"
)

// Limit is the tightest cut of the machine and what follows from it.
type Limit struct {
	Bus   float64 // GB/s: no all-gather has a higher bus bandwidth
	Share float64 // GB/s that each rank can send to all others at once
	Inner int     // ranks on the sending side of the cut
	Out   float64 // GB/s that leave them
}

func (l Limit) String() string {
	return fmt.Sprintf("%s -> %.4g GB/s", plural.Of(l.Inner, "GPU"), l.Out)
}

// unit is what capacities are counted in, GB/s: fine enough for every constant in use, coarse enough for sums in 63 bits.
const unit = 1e-6

// Bound is what no schedule of an all-gather over copies of host n can beat. Each set of nodes that lacks a GPU has to pass on what
// its GPUs contribute, so the share x of one rank is at most
//
//	capacity that leaves S / GPUs in S      for all S that do not hold all GPUs
//
// and by Edmonds' theorem this is reached if every node can pass on as much as it can take in (L. Zhao and others, "ForestColl:
// throughput-optimal collective communications on heterogeneous network fabrics", 2024). Turned round (Network.Reversed) it is
// the bound for a reduce-scatter.
//
// The tightest S is found by Newton's method: for the best x so far a minimum cut tells whether some S allows less. The GPU
// outside S may be assumed on host 0, and then the others of the hosts count as one of that many times the capacity: they are alike,
// and the smallest minimum cut treats alike what is alike. So the cost does not grow with the hosts.
func Bound(n *Network, hosts int) Limit {
	best := Limit{Share: math.Inf(1)}
	c := newCutter(n, hosts)
	if c.ranks < 2 {
		return Limit{}
	}
	best.Inner, best.Out = c.others()
	for k := range n.GPUs {
		for best.Out > 0 && c.tighter(k, &best) {
		}
	}
	best.Share = best.Out / float64(best.Inner)
	best.Bus = best.Share * float64(c.ranks-1)
	return best
}

// cutter looks for cuts in host 0 (nodes as they are), the other hosts as one (nodes behind them), the fabric and a source.
type cutter struct {
	n             *Network
	hosts, ranks  int
	f             *flow
	links         []int64 // capacity of each link's arc
	arcs          []int   // their places in f
	feeds         []int   // arcs from the source to each GPU, then to the other hosts' GPUs
	fabric, start int
}

func newCutter(n *Network, hosts int) *cutter {
	c := &cutter{n: n, hosts: hosts, ranks: hosts * len(n.GPUs), fabric: 2 * n.Nodes, start: 2*n.Nodes + 1}
	c.f = newFlow(2*n.Nodes + 2)
	c.host(0, 1)
	if hosts > 1 {
		c.host(n.Nodes, int64(hosts-1))
	}
	return c
}

func (c *cutter) host(base int, times int64) {
	for _, l := range c.n.Links {
		c.links = append(c.links, int64(math.Round(l.Cap/unit))*times)
		c.arcs = append(c.arcs, c.f.add(base+l.From, base+l.To, 0))
	}
	for _, g := range c.n.GPUs {
		c.feeds = append(c.feeds, c.f.add(c.start, base+g, 0))
	}
	if c.hosts == 1 && !c.n.Cut {
		return
	}
	for _, p := range c.n.Nets {
		c.f.add(base+p, c.fabric, 1<<60)
		c.f.add(c.fabric, base+p, 1<<60)
	}
}

// others is a first cut: what can get into the first GPU, from all others.
func (c *cutter) others() (int, float64) {
	into := 0.0
	for _, l := range c.n.Links {
		if l.To == c.n.GPUs[0] {
			into += l.Cap
		}
	}
	return c.ranks - 1, into
}

// tighter looks for a cut around GPU k that allows less than best. All is multiplied by best.Inner, so that the shares are whole.
func (c *cutter) tighter(k int, best *Limit) bool {
	inner, out := int64(best.Inner), int64(math.Round(best.Out/unit))
	for i, a := range c.arcs {
		c.f.set(a, c.links[i]*inner)
	}
	gpus := len(c.n.GPUs)
	for i, a := range c.feeds {
		times := int64(1)
		if i >= gpus {
			times = int64(c.hosts - 1)
		}
		c.f.set(a, out*times)
	}
	if c.f.run(c.start, c.n.GPUs[k]) >= out*int64(c.ranks) {
		return false
	}
	found, leaves := c.cut()
	if found == 0 || leaves*inner >= out*int64(found) {
		return false // by rounding only
	}
	best.Inner, best.Out = found, float64(leaves)*unit
	return true
}

// cut counts the ranks on the source's side and the capacity that leaves it.
func (c *cutter) cut() (inner int, leaves int64) {
	gpus := len(c.n.GPUs)
	for i, a := range c.feeds {
		if c.f.reached(int(c.f.arcs[a].to)) {
			if inner++; i >= gpus {
				inner += c.hosts - 2
			}
		}
	}
	for i, a := range c.arcs {
		if c.f.reached(int(c.f.arcs[a^1].to)) && !c.f.reached(int(c.f.arcs[a].to)) {
			leaves += c.links[i]
		}
	}
	return inner, leaves
}
