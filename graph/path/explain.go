package path

import (
	"fmt"
	"slices"

	"hccl.dev/hccl/graph/topo"
)

// Explanation is why a pair goes its way.
type Explanation struct {
	Path   Path
	Rules  []string      // that changed the path which the search had found, in order
	Others []Alternative // best first
}

// Alternative is a way that is not taken.
type Alternative struct {
	Path  Path
	Why   string
	Alike int // further ways of this type, bandwidth and length
}

// Explain tells why data go from one GPU or port to another as they do.
func (t *Table) Explain(from, to int) Explanation {
	e := Explanation{Path: t.Between(from, to)}
	best := e.Path // of those that are compared by type, bandwidth and hops; rules come after
	net, byNet := t.ByNetwork(from, to)
	if e.Path.Type == NET && byNet {
		e.Path = net
	}
	for k, r := range t.rules[pair{from, to}] {
		if k == 0 {
			best = r.before
		}
		e.Rules = append(e.Rules, t.ruleText(r, from, to))
		e.add(r.before, t.refused(r))
	}
	for _, typ := range []topo.LinkType{topo.NVL, topo.C2C, topo.PCI} {
		if p := t.without(from, to, typ); p.Exists() {
			e.add(p, best.against(p))
		}
	}
	ways, _ := t.Ways(from, to)
	for _, p := range ways {
		e.add(p, best.against(p))
	}
	if byNet && from != to {
		e.add(net, "the network is taken only where both GPUs have a port within PXB that is faster than the path between them")
	}
	slices.SortStableFunc(e.Others, func(a, b Alternative) int {
		if a.Path.before(b.Path) {
			return -1
		}
		if b.Path.before(a.Path) {
			return 1
		}
		return 0
	})
	return e
}

// add takes a way in that is not there yet.
func (e *Explanation) add(p Path, why string) {
	if slices.Equal(p.Links, e.Path.Links) || len(p.Links) == 0 {
		return
	}
	for k := range e.Others {
		switch o := &e.Others[k]; {
		case slices.Equal(o.Path.Links, p.Links):
			return
		case o.Path.Type == p.Type && o.Path.Bandwidth == p.Bandwidth && len(o.Path.Links) == len(p.Links):
			o.Alike++
			return
		}
	}
	e.Others = append(e.Others, Alternative{Path: p, Why: why})
}

// against says why q is not taken where p is.
func (p Path) against(q Path) string {
	more := len(q.Links) - len(p.Links)
	switch {
	case q.before(p):
		return "better by itself, but refused by a rule"
	case q.Type != p.Type:
		return fmt.Sprintf("%s is worse than %s, and the type decides before the bandwidth", q.Type, p.Type)
	case q.Bandwidth < p.Bandwidth:
		return fmt.Sprintf("of the same type, but narrower: %.4g of %.4g GB/s", q.Bandwidth, p.Bandwidth)
	case more == 1:
		return "of the same type and bandwidth, but one hop more"
	case more > 1:
		return fmt.Sprintf("of the same type and bandwidth, but %d hops more", more)
	}
	return "as good; the first in the order of the source is taken"
}

// ruleText says what a rule did.
func (t *Table) ruleText(r rule, from, to int) string {
	a, b := t.Graph.Nodes[from].Name, t.Graph.Nodes[to].Name
	switch r.id {
	case noP2P:
		return fmt.Sprintf("peer-to-peer access is not used beyond PXB, and %s to %s is %s: over the memory of %s's NUMA node", a, b,
			r.before.Type, b)
	case netFaster:
		return fmt.Sprintf("%s and %s each have a port within PXB that is faster than the %.4g GB/s between them: left to the network", a, b,
			r.before.Bandwidth)
	case byChip:
		return fmt.Sprintf("%s reaches its CPU by C2C and the CPU reaches the port by PCI: counted as P2C", a)
	case relayedPXN:
		return fmt.Sprintf("the GPU beside %s is joined with %s by NVLink and is faster or spares the CPU: it sends for %s (PXN)", b, a, a)
	}
	return fmt.Sprintf("GPU-direct RDMA is not used between %s and %s: over the memory of the GPU's NUMA node", a, b)
}

// refused says why the way before a rule is not taken.
func (t *Table) refused(r rule) string {
	switch r.id {
	case netFaster:
		return "the network is faster"
	case noP2P:
		return "GPUs that far apart do not access each other's memory"
	case relayedPXN:
		return "the relay is faster or spares the CPU"
	case noGDR:
		return "the port and the GPU do not both support it, or are too far apart"
	}
	return "refused by a rule"
}

// ByNetwork is the way out by the nearest port of one GPU and in by that of the other, on the same or an equal host.
func (t *Table) ByNetwork(from, to int) (Path, bool) {
	out, in := t.near(from, t.Graph.Ports), t.near(to, t.Graph.Ports)
	if t.Graph.Nodes[from].GPU == nil || t.Graph.Nodes[to].GPU == nil || len(out) == 0 || len(in) == 0 {
		return nowhere, false
	}
	a, b := t.Between(from, out[0]), t.Between(in[0], to)
	return Path{Type: NET, Bandwidth: min(a.Bandwidth, b.Bandwidth), Links: slices.Concat(a.Links, b.Links), Via: -1}, true
}
