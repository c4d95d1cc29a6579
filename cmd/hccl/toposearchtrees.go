package main

import (
	"fmt"
	"slices"

	"hccl.dev/hccl/graph/pack"
)

// treeWriter writes trees out for all hosts. Trees of a reduce-scatter are found as those of an all-gather on the network turned
// round, and every edge is turned back as it is written.
type treeWriter struct {
	h       *pack.Host
	links   *pack.Host // whose links the trees' routes are made of
	towards bool
}

func awayFrom(h *pack.Host) *treeWriter { return &treeWriter{h, h, false} }

func towards(h *pack.Host, turned *pack.Network) *treeWriter {
	w := &treeWriter{h, h, true}
	if turned != nil {
		links := *h
		links.Network = *turned
		w.links = &links
	}
	return w
}

func (w *treeWriter) all(hosts int, p *pack.TreePacking) (all []tree) {
	for host := range hosts {
		for root := range w.h.GPUs {
			p.Whole(root, func(weight float64, inside []pack.Edge, beyond *pack.Spread) {
				t := tree{Root: w.gpu(host, root), Weight: short(weight)}
				for _, e := range inside {
					t.Edges = append(t.Edges, w.edge(e, host, host))
				}
				for other := range hosts {
					if other == host {
						continue
					}
					for _, e := range beyond.Enter {
						t.Edges = append(t.Edges, w.edge(e, host, other))
					}
					for _, e := range beyond.Edges {
						t.Edges = append(t.Edges, w.edge(e, other, other))
					}
				}
				all = append(all, t)
			})
		}
	}
	return all
}

// way is where an edge goes in the direction in which data go: names of nodes up to a port and, on the other host, from a port on.
type way struct {
	from, to    int // GPUs
	leave, back []string
}

func (w *treeWriter) way(e pack.Edge) way {
	v := way{e.From, e.To, w.links.Route(w.links.GPUs[e.From], e.Route), nil}
	if len(e.Back) > 0 {
		v.back = w.links.Route(w.links.Links[e.Back[0]].From, e.Back)
	}
	if !w.towards {
		return v
	}
	v.from, v.to = v.to, v.from
	slices.Reverse(v.leave)
	if v.back != nil {
		slices.Reverse(v.back)
		v.leave, v.back = v.back, v.leave
	}
	return v
}

// edge names an edge by its ends alone where it takes the fixed path, by its ports where it takes the fixed paths to and from them, and
// else by its nodes.
func (w *treeWriter) edge(e pack.Edge, from, to int) treeEdge {
	v := w.way(e)
	if w.towards {
		from, to = to, from
	}
	out := treeEdge{From: w.gpu(from, v.from), To: w.gpu(to, v.to)}
	if leave, enter, ok := w.fixed(v); ok {
		if v.back != nil {
			out.Out, out.In = &w.h.Ports[leave], &w.h.Ports[enter]
		}
		return out
	}
	for _, name := range v.leave {
		out.Route = append(out.Route, at(from, name))
	}
	for _, name := range v.back {
		out.Route = append(out.Route, at(to, name))
	}
	return out
}

// fixed tells whether a way is the fixed path, or those to a port and from a port.
func (w *treeWriter) fixed(v way) (leave, enter int, ok bool) {
	if v.back == nil {
		return 0, 0, slices.Equal(v.leave, w.h.Path(v.from, v.to))
	}
	leave, enter = w.port(v.leave[len(v.leave)-1]), w.port(v.back[0])
	gpus := len(w.h.GPUs)
	return leave, enter, slices.Equal(v.leave, w.h.Path(v.from, gpus+leave)) && slices.Equal(v.back, w.h.Path(gpus+enter, v.to))
}

func (w *treeWriter) port(name string) int {
	return slices.IndexFunc(w.h.Nets, func(node int) bool { return w.h.Names[node] == name })
}

func (w *treeWriter) gpu(host, gpu int) string { return fmt.Sprintf("%d/gpu%d", host, w.h.Ranks[gpu]) }

// sayable tells whether all edges can be told by names: not if they take another than the fixed path by a node whose name others have.
func (w *treeWriter) sayable(p *pack.TreePacking) bool {
	var edges []pack.Edge
	for _, t := range p.Trees {
		edges = append(edges, t.Edges...)
	}
	for _, s := range p.Spreads {
		edges = append(append(edges, s.Enter...), s.Edges...)
	}
	for _, e := range edges {
		v := w.way(e)
		if _, _, fixed := w.fixed(v); !fixed && (slices.ContainsFunc(v.leave, w.h.Double) || slices.ContainsFunc(v.back, w.h.Double)) {
			return false
		}
	}
	return true
}
