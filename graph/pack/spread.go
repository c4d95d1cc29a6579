package pack

import (
	"math"
	"slices"
)

// packing scales the weights so that every root sends the same and the links hold it.
func (g *grower) packing(m mix, hosts int, limit Limit, out TreePacking) TreePacking {
	out.Bound = m.bound * limit.Bus
	load := make([]float64, len(g.net.pipes))
	served := make([]float64, len(g.want))
	for j, w := range m.weights {
		served[m.columns[j].demand] += w
	}
	if slices.Min(served) <= 0 {
		return out
	}
	for j, w := range m.weights {
		if w == 0 {
			continue
		}
		c := &m.columns[j]
		w *= g.want[c.demand] / served[c.demand] // now each demand has what it wants for a share of 1
		c.addTo(load, w)
		g.put(&out, c, w/g.want[c.demand])
	}
	share := math.Inf(1)
	for k, l := range load {
		if l > 0 {
			share = min(share, g.net.pipes[k].hold/l)
		}
	}
	out.scale(share, hosts, len(g.net.gpus))
	for k, q := range g.net.pipes {
		for _, l := range q.links {
			out.Loads[l] += load[k] * share
		}
	}
	return out
}

// put adds a tree or spread; w is its part of what its root or, for spreads, all roots send.
func (g *grower) put(out *TreePacking, c *column, w float64) {
	var enter, edges []Edge
	for _, b := range g.grown[c.tag] {
		if e := g.edge(b); b.enter {
			enter = append(enter, e)
		} else {
			edges = append(edges, e)
		}
	}
	if c.demand < len(g.net.gpus) {
		out.Trees = append(out.Trees, Tree{c.demand, w, edges})
	} else {
		out.Spreads = append(out.Spreads, Spread{w, enter, edges})
	}
}

func (g *grower) edge(b branch) Edge {
	e := Edge{From: b.from, To: b.to}
	at := &e.Route
	for _, k := range b.pipes {
		q := &g.net.pipes[k]
		if *at = append(*at, q.links...); q.to == g.net.fabric {
			at = &e.Back
		}
	}
	return e
}

func (p *TreePacking) scale(share float64, hosts, gpus int) {
	for k := range p.Trees {
		p.Trees[k].Weight *= share
	}
	for k := range p.Spreads {
		p.Spreads[k].Weight *= share * float64(gpus)
	}
	p.Share = share
	p.Bus = share * float64(hosts*gpus-1)
}

// Whole calls do for every tree from the GPU root of a host with what goes with it in every other host (nil on one host). The roots
// of a host take the spreads one after the other, each for as much as it sends.
func (p *TreePacking) Whole(root int, do func(weight float64, inside []Edge, beyond *Spread)) {
	trees := p.of(root)
	if len(p.Spreads) == 0 {
		for _, t := range trees {
			do(t.Weight, t.Edges, nil)
		}
		return
	}
	at, left := p.skip(float64(root) * p.Share)
	for _, t := range trees {
		for rest := t.Weight; rest > 1e-9*p.Share; {
			w := min(rest, left)
			if at == len(p.Spreads)-1 {
				w = rest // what rounding left over
			}
			if w > 1e-9*p.Share {
				do(w, t.Edges, &p.Spreads[at])
			}
			rest -= w
			if left -= w; left <= 1e-9*p.Share && at < len(p.Spreads)-1 {
				at++
				left = p.Spreads[at].Weight
			}
		}
	}
}

func (p *TreePacking) of(root int) []Tree {
	var trees []Tree
	for _, t := range p.Trees {
		if t.Root == root {
			trees = append(trees, t)
		}
	}
	return trees
}

// skip is the spread at which a weight is used up by those before, and what is left of it.
func (p *TreePacking) skip(weight float64) (at int, left float64) {
	for at = range p.Spreads {
		if left = p.Spreads[at].Weight - weight; left > 1e-9*p.Share {
			return at, left
		}
		weight -= p.Spreads[at].Weight
	}
	return at, left
}
