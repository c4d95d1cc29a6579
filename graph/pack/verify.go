package pack

import (
	"fmt"
)

// holdsTo is how far over what a link holds, or under what is said, a packing may be: rounding.
const holdsTo = 1e-4

// Verify counts anew what rings put on the links of each host, and says what is wrong. One rank of a job may search and the others
// verify, which costs less than a search; what holds on one host holds on all, since rings pass all alike.
func (p *RingPacking) Verify(n *Network, hosts int) error {
	load, sum := make([]float64, len(n.Links)), 0.0
	for k, r := range p.Rings {
		if !(r.Weight > 0) {
			return fmt.Errorf("ring %d has a weight of %g", k, r.Weight)
		}
		sum += r.Weight
		if err := r.verify(n, hosts, load); err != nil {
			return fmt.Errorf("ring %d: %w", k, err)
		}
	}
	if p.Bus > sum*(1+holdsTo) {
		return fmt.Errorf("rings of %g GB/s together are said to be %g", sum, p.Bus)
	}
	return overloaded(n, load)
}

func (r *Ring) verify(n *Network, hosts int, load []float64) error {
	seen := make([]bool, len(n.GPUs))
	for _, s := range r.Segments {
		stops := s.GPUs
		for _, g := range s.GPUs {
			if g < 0 || g >= len(seen) || seen[g] {
				return fmt.Errorf("GPU %d: want each of %d once", g, len(seen))
			}
			seen[g] = true
		}
		switch inside := s.In < 0 && s.Out < 0; {
		case len(stops) == 0:
			return fmt.Errorf("a segment without GPUs")
		case inside && hosts == 1 && len(r.Segments) == 1:
			stops = append(append([]int(nil), stops...), stops[0])
		case s.In < 0 || s.In >= len(n.Nets) || s.Out < 0 || s.Out >= len(n.Nets) || hosts == 1 && len(r.Segments) == 1:
			return fmt.Errorf("from port %d to port %d of %d", s.In, s.Out, len(n.Nets))
		default:
			in, out := len(n.GPUs)+s.In, len(n.GPUs)+s.Out
			stops = append(append([]int{in}, stops...), out)
		}
		for k := 1; k < len(stops); k++ {
			route := n.Routes[stops[k-1]][stops[k]]
			if route == nil {
				return fmt.Errorf("no route from device %d to %d", stops[k-1], stops[k])
			}
			for _, u := range route {
				load[u.Link] += r.Weight * u.Factor
			}
		}
	}
	for g, passed := range seen {
		if !passed {
			return fmt.Errorf("GPU %d is not passed", g)
		}
	}
	return nil
}

func overloaded(n *Network, load []float64) error {
	for k, l := range n.Links {
		if load[k] > l.Cap*(1+holdsTo) {
			return fmt.Errorf("link %d from node %d to %d carries %g of %g GB/s", k, l.From, l.To, load[k], l.Cap)
		}
	}
	return nil
}

// Verify does the same for trees, on the network that they were found on: every tree reaches every GPU once, every root sends its
// share, and the links hold it.
func (p *TreePacking) Verify(n *Network, hosts int) error {
	v := treeCheck{n: n, load: make([]float64, len(n.Links)), sent: make([]float64, len(n.GPUs)+1)}
	for k, t := range p.Trees {
		if t.Root < 0 || t.Root >= len(n.GPUs) || !(t.Weight > 0) {
			return fmt.Errorf("tree %d from GPU %d with a weight of %g", k, t.Root, t.Weight)
		}
		v.sent[t.Root] += t.Weight
		if err := v.reach(t.Root, nil, t.Edges, t.Weight); err != nil {
			return fmt.Errorf("tree %d: %w", k, err)
		}
	}
	for k, s := range p.Spreads {
		v.sent[len(n.GPUs)] += s.Weight
		// Its weight passes every one of the other hosts, and comes from this host as often.
		if err := v.reach(-1, s.Enter, s.Edges, s.Weight*float64(hosts-1)); err != nil || !(s.Weight > 0) {
			return fmt.Errorf("spread %d with a weight of %g: %w", k, s.Weight, err)
		}
	}
	for root, sent := range v.sent {
		want := p.Share
		if root == len(n.GPUs) {
			want *= float64(len(n.GPUs))
			if hosts == 1 {
				want = 0
			}
		}
		if sent < want*(1-holdsTo) {
			return fmt.Errorf("GPU %d sends %g of %g GB/s", root, sent, want)
		}
	}
	if p.Bus > p.Share*float64(hosts*len(n.GPUs)-1)*(1+holdsTo) {
		return fmt.Errorf("a share of %g GB/s is said to make %g", p.Share, p.Bus)
	}
	return overloaded(n, v.load)
}

type treeCheck struct {
	n          *Network
	load, sent []float64
}

// reach loads the links of a tree, and checks that it reaches every GPU from the root or the entries.
func (v *treeCheck) reach(root int, enter, edges []Edge, weight float64) error {
	gpus := len(v.n.GPUs)
	parent := make([]int, gpus) // gpus: none yet; -1: from where the data come
	for k := range parent {
		parent[k] = gpus
	}
	if root >= 0 {
		parent[root] = -1
	}
	for k, e := range append(append([]Edge(nil), enter...), edges...) {
		if e.From < 0 || e.From >= gpus || e.To < 0 || e.To >= gpus || parent[e.To] != gpus {
			return fmt.Errorf("an edge from GPU %d to GPU %d, which is reached already or not there", e.From, e.To)
		}
		if parent[e.To] = e.From; k < len(enter) {
			parent[e.To] = -1
		}
		if err := v.walk(e, k < len(enter), weight); err != nil {
			return err
		}
	}
	for g := range parent {
		for at, steps := g, 0; at >= 0; at = parent[at] {
			if steps++; at == gpus || steps > gpus {
				return fmt.Errorf("GPU %d is not reached", g)
			}
		}
	}
	return nil
}

func (v *treeCheck) walk(e Edge, enter bool, weight float64) error {
	at := v.n.GPUs[e.From]
	for k, l := range append(append([]int(nil), e.Route...), e.Back...) {
		if l < 0 || l >= len(v.n.Links) {
			return fmt.Errorf("link %d of %d", l, len(v.n.Links))
		}
		if k == len(e.Route) { // through the fabric
			if !v.port(at) || !v.port(v.n.Links[l].From) {
				return fmt.Errorf("the edge from GPU %d to GPU %d meets the fabric beside a port", e.From, e.To)
			}
			at = v.n.Links[l].From
		}
		if v.n.Links[l].From != at {
			return fmt.Errorf("the edge from GPU %d to GPU %d breaks before link %d", e.From, e.To, l)
		}
		at = v.n.Links[l].To
		v.load[l] += weight
	}
	if at != v.n.GPUs[e.To] || enter && len(e.Back) == 0 {
		return fmt.Errorf("the edge from GPU %d to GPU %d ends at node %d", e.From, e.To, at)
	}
	return nil
}

func (v *treeCheck) port(node int) bool {
	for _, p := range v.n.Nets {
		if p == node {
			return true
		}
	}
	return false
}
