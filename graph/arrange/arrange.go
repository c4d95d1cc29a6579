// Package arrange decides in which order rings pass the ranks of a communicator, from what the ranks have told each other. All ranks
// that know the same find the same, so that nobody has to tell the result.
//
//	ranks (host, NUMA node, cache, GPU) ─┐
//	rings that a file asks for ──────────┤
//	measured rates between places ───────┼──> one order of ranks for each channel
//	machines with GPUs ──────────────────┘
//
// The best that is known of a host decides: rings of a file; where every rank computes on a GPU, the rings packed into the links of the
// hosts (package pack); measured rates; or the places alone. Whichever it is, the ranks of a host stand together, so that each ring
// crosses a host's boundary once in each direction (where a packing leaves a host in several parts, as often as it has parts).
//
// It is pure: core gathers what it is given, and makes plans of what it returns.
package arrange

import (
	"fmt"
	"slices"

	"hccl.dev/hccl/graph"
	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/topo"
)

// Rank is what is known of a rank.
type Rank struct {
	graph.Place
	GPU   string // bus id of the GPU that it computes on; "": it computes on the host
	Rates []Rate // what was measured from its place to others on its host
	Rings []Ring // that a file on its host asks for
}

// Rate is what was measured to a place, named as in package cost.
type Rate struct {
	To             string
	BytesPerSecond float64
}

// Ring is an order of a host's ranks: by the numbers of their GPUs, or of the ranks on this host where they compute on it.
type Ring struct {
	Line int // of the file
	Devs []int
}

// Machines are the hosts by their numbers in Place; nil where a host's is not known. They belong to Rings from then on.
type Machines []*topo.Machine

// Result is how rings go.
type Result struct {
	Orders [][]int // of ranks; one for each channel, at least one
	By     string  // for people: what decided
	Faults []Fault // what was asked for and cannot be
}

// Fault is what is wrong with a rank's file, for people.
type Fault struct {
	Rank int
	Text string
}

// most is how many orders there may be: more channels help nobody.
const most = 16

// Rings finds the orders.
func Rings(ranks []Rank, machines Machines, scope cost.Scope) Result {
	if scope == cost.Nothing {
		order := make([]int, len(ranks))
		for r := range order {
			order[r] = r
		}
		return Result{Orders: [][]int{order}, By: "nothing: HCCL_TOPO_SCOPE=none"}
	}
	a := arrangement{ranks: ranks, machines: machines}
	a.group()
	if asked := a.asked(); !asked {
		if orders, err := a.packed(); err == nil {
			return Result{Orders: orders, By: "the links between GPUs"}
		}
	}
	return a.join()
}

// arrangement is the work: the ranks of each host, in the order of the hosts' lowest ranks.
type arrangement struct {
	ranks    []Rank
	machines Machines
	hosts    []site
	faults   []Fault
}

// site is a host's ranks in the order of their places, and the orders that rings pass them in.
type site struct {
	ranks []int
	rings [][]int
	by    string
}

func (a *arrangement) group() {
	places := make([]graph.Place, len(a.ranks))
	for r := range a.ranks {
		places[r] = a.ranks[r].Place
	}
	for k, r := range graph.Order(places) {
		if k == 0 || a.ranks[r].Host != a.ranks[a.last()].Host {
			a.hosts = append(a.hosts, site{})
		}
		h := &a.hosts[len(a.hosts)-1]
		h.ranks = append(h.ranks, r)
	}
}

func (a *arrangement) last() int {
	h := a.hosts[len(a.hosts)-1]
	return h.ranks[len(h.ranks)-1]
}

// asked takes the rings that files ask for: of each host those of its first rank that has any.
func (a *arrangement) asked() (any bool) {
	for k := range a.hosts {
		h := &a.hosts[k]
		byNumber := slices.Sorted(slices.Values(h.ranks))
		from := slices.IndexFunc(byNumber, func(r int) bool { return len(a.ranks[r].Rings) > 0 })
		if from < 0 {
			continue
		}
		dev := a.devs(byNumber)
		for _, ring := range a.ranks[byNumber[from]].Rings {
			order, err := follow(ring, dev)
			if err != nil {
				a.faults = append(a.faults, Fault{byNumber[from], fmt.Sprintf("line %d: the channel is not used: %v; let it pass each of the %d "+
					"once", ring.Line, err, len(h.ranks))})
			} else if len(h.rings) < most {
				h.rings = append(h.rings, order)
			}
		}
		if h.rings != nil {
			h.by, any = fmt.Sprintf("NCCL_GRAPH_FILE of rank %d", byNumber[from]), true
		}
	}
	return any
}

// devs are the ranks of a host by the numbers that a file has for them.
func (a *arrangement) devs(ranks []int) map[int]int {
	dev := map[int]int{}
	for k, r := range ranks {
		n := k
		if g := a.gpu(r); g != nil {
			n = g.Number
		}
		dev[n] = r
	}
	return dev
}

// follow is a ring in ranks. A file may be of more ranks than there are; all that are there must be in it.
func follow(ring Ring, dev map[int]int) (order []int, err error) {
	seen := map[int]bool{}
	for _, d := range ring.Devs {
		r, here := dev[d]
		if seen[d] {
			return nil, fmt.Errorf("it passes %d twice", d)
		}
		if seen[d] = true; here {
			order = append(order, r)
		}
	}
	if len(order) < len(dev) {
		return nil, fmt.Errorf("it passes %d of the %d ranks on this host", len(order), len(dev))
	}
	return order, nil
}

// join puts the hosts' orders behind each other.
func (a *arrangement) join() Result {
	channels := 1
	for k := range a.hosts {
		h := &a.hosts[k]
		if h.rings == nil {
			h.rings, h.by = a.near(h)
		}
		channels = max(channels, len(h.rings))
	}
	found := Result{Faults: a.faults}
	var by []string
	for c := range channels {
		var order []int
		for _, h := range a.hosts {
			order = append(order, h.rings[c%len(h.rings)]...)
			if !slices.Contains(by, h.by) {
				by = append(by, h.by)
			}
		}
		found.Orders = append(found.Orders, order)
	}
	found.By = list(by)
	return found
}

func list(all []string) (text string) {
	for k, s := range all {
		if k > 0 {
			text += ", "
		}
		text += s
	}
	return text
}
