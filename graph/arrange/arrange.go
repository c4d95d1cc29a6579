// Package arrange decides in which order rings pass the ranks of a communicator, from what the ranks have told each other.
//
//	ranks (host, NUMA node, cache, device) ──┐
//	rings that a file asks for ──────────────┤
//	measured rates between places ───────────┼──> one order of ranks for each channel
//	machines, one for each host ─────────────┘
//
// The best that is known of a host decides: rings of a file; the rings packed into the links of the hosts (package pack) where ranks are
// bound to GPUs of their machines; measured rates; or the places alone. Whichever it is, the ranks of a host stand together, so that
// each ring crosses a host's boundary once in each direction (where a packing leaves a host in several parts, as often as it has parts).
//
// All ranks that know the same find the same. What takes long, the packing, one rank finds for all:
//
//	New      merges hosts and ranks into one topology, and binds ranks to GPUs      bind.go
//	Solve    packs rings into its links: on one rank, whose Solution all others get  solve.go
//	Take     verifies a Solution against what this rank knows, and makes orders of it
//	Near     makes orders without: where there is nothing to solve                   near.go, file.go
//
// It is pure: core gathers what it is given, and makes plans of what it returns.
package arrange

import (
	"cmp"
	"slices"
	"strings"

	"hccl.dev/hccl/graph"
	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/pack"
	"hccl.dev/hccl/graph/topo"
)

// Rank is what is known of a rank.
type Rank struct {
	graph.Place
	Switch string // of the network above its host, "": not known
	Group  int    // of that switch: its pod
	Device int    // number of the GPU that it says is its own; on a machine of several it may be wrong, see bind
	Rates  []Rate // what was measured from its place to others on its host
	Rings  []Ring // that a file on its host asks for
	WhyNot string // what is the matter with the file that should describe its host, "": nothing
}

// Rate is what was measured to a place, named as in package cost.
type Rate struct {
	To             string
	BytesPerSecond float64
}

// Ring is an order of a host's ranks: by the numbers of their GPUs, or of the ranks on this host where they are bound to none.
type Ring struct {
	Line int // of the file
	Devs []int
}

// Machines are the hosts by their numbers in Place; nil where a host's is not known. They are only read.
type Machines []*topo.Machine

// Result is how rings go.
type Result struct {
	Orders [][]int // of ranks; one for each channel, at least one
	Ways   []Way   // of each order where it was packed, else nil
	Width  float64 // GB/s of each channel where it was packed
	By     string  // for people: what decided, and why nothing better
	Faults []Fault // what was asked for and cannot be
}

// Way is by which ports a ring enters and leaves each host, by the host's number in Place; -1 both where it stays inside, or where none
// is known.
type Way []struct{ In, Out int }

// Fault is what is wrong with a rank's file, for people.
type Fault struct {
	Rank int
	Text string
}

// most is how many orders there may be: more channels help nobody.
const most = 16

// Arrangement is the hosts and ranks of a communicator as one topology.
type Arrangement struct {
	ranks    []Rank
	machines Machines
	scope    cost.Scope
	hosts    []site
	gpus     []*topo.GPU // by rank; nil: bound to none
	whyNot   string      // of a host's links that are not searched, "": there is none
	file     bool        // rings of a file decide
	plugged  bool        // hosts stand by their switches
	faults   []Fault
	kinds    []kind // of the hosts, with sites; once they are needed
	sites    []pack.Site
}

// site is a host's ranks in the order of their places, and the orders that rings pass them in.
type site struct {
	ranks []int
	rings [][]int
	by    string

	searched bool // its ranks are bound to GPUs whose links are known
}

// New merges what is known.
func New(ranks []Rank, machines Machines, scope cost.Scope) *Arrangement {
	a := &Arrangement{ranks: ranks, machines: machines, scope: scope, gpus: make([]*topo.GPU, len(ranks))}
	a.group()
	a.bind()
	a.file = scope != cost.Nothing && a.asked()
	return a
}

func (a *Arrangement) group() {
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
	if a.scope == cost.All {
		a.plug()
	}
}

// plug puts hosts of one group of switches together, and within it those of one switch, so that a ring crosses the network above them once
// for each. Groups and switches stand in the order of their first hosts; hosts that nothing is known of count as on one switch.
func (a *Arrangement) plug() {
	type socket struct {
		group int
		name  string
	}
	groups, switches := map[int]int{}, map[socket]int{} // the first host of each
	at := func(h site) socket { return socket{a.ranks[h.ranks[0]].Group, a.ranks[h.ranks[0]].Switch} }
	for k, h := range a.hosts {
		s := at(h)
		a.plugged = a.plugged || s.name != ""
		if _, known := groups[s.group]; !known {
			groups[s.group] = k
		}
		if _, known := switches[s]; !known {
			switches[s] = k
		}
	}
	if a.plugged {
		slices.SortStableFunc(a.hosts, func(x, y site) int {
			s, t := at(x), at(y)
			return cmp.Or(cmp.Compare(groups[s.group], groups[t.group]), cmp.Compare(switches[s], switches[t]))
		})
	}
}

// above tells, for people, what the order of hosts goes by, where it is more than their lowest ranks.
func (a *Arrangement) above() string {
	if a.plugged {
		return ", hosts by their network switches"
	}
	return ""
}

func (a *Arrangement) last() int {
	h := a.hosts[len(a.hosts)-1]
	return h.ranks[len(h.ranks)-1]
}

// Near makes orders of files, measures and places: the hosts' orders behind each other.
func (a *Arrangement) Near() Result {
	if a.scope == cost.Nothing {
		order := make([]int, len(a.ranks))
		for r := range order {
			order[r] = r
		}
		return Result{Orders: [][]int{order}, By: "nothing: HCCL_TOPO_SCOPE=none"}
	}
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
	found.By = strings.Join(by, ", ") + a.above()
	if why := cmp.Or(a.whyNot, a.single()); why != "" && !a.file {
		found.By += " (" + why + ")"
	}
	return found
}

// single tells why known links between GPUs decide nothing, "" where none are known.
func (a *Arrangement) single() string {
	switch searched := slices.ContainsFunc(a.hosts, func(h site) bool { return h.searched }); {
	case !searched:
		return ""
	case len(a.ranks) < 3:
		return "there is one ring of two ranks, whatever links there are"
	}
	return "no host has two ranks, which links could join"
}
