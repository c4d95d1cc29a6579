package path

import (
	"slices"

	"hccl.dev/hccl/graph/topo"
)

// trail is a path as it grows, backwards from the base: its first link, and the trail from there on. A trail never changes, so
// that those which share it keep what they were made with when a better one turns up.
type trail struct {
	link  int
	rest  *trail
	hops  int
	typ   Type
	bw    float64
	known bool
}

func (a *trail) worse(typ Type, bw float64, hops int) bool {
	switch {
	case !a.known:
		return true
	case a.typ != typ:
		return typ < a.typ
	case a.bw != bw:
		return bw > a.bw
	}
	return hops < a.hops
}

// search finds the paths from all nodes to the base: outwards from it, level by level, each node as often as it was improved.
// left is what each link still has, where that is not all; links with nothing left are not used.
func search(g *topo.Graph, base int, left []float64) []Path {
	best := make([]trail, len(g.Nodes))
	best[base] = trail{typ: LOC, bw: topo.LocalBW, known: true, link: -1}
	for level := []int{base}; len(level) > 0; {
		var next []int
		for _, node := range level {
			at := best[node]
			for _, l := range g.Nodes[node].Out {
				link := &g.Links[l]
				if link.Reverse < 0 || barred(g, base, node, &at, link) {
					continue
				}
				typ, bw := typeAfter(g, base, node, &at, link), min(at.bw, link.Bandwidth)
				if left != nil {
					bw = min(at.bw, left[link.Reverse]) // the way back is what the path takes
				}
				if bw <= 0 {
					continue
				}
				if best[link.To].worse(typ, bw, at.hops+1) {
					best[link.To] = trail{link.Reverse, &at, at.hops + 1, typ, bw, true}
					if !slices.Contains(next, link.To) {
						next = append(next, link.To)
					}
				}
			}
		}
		level = next
	}
	return paths(g, best)
}

// deviceHops is how far a GPU's device is from the base: one further if the base is a GPU, which hangs on its own device.
func deviceHops(g *topo.Graph, base int) int {
	if g.Nodes[base].Kind == topo.GPUNode {
		return 2
	}
	return 1
}

// barred: data pass through another GPU's device only to its own GPU, or by NVLink to one more device.
func barred(g *topo.Graph, base, node int, at *trail, link *topo.Link) bool {
	if g.Nodes[node].Kind != topo.DeviceNode || node == g.DeviceOf(base) {
		return false
	}
	far := g.Nodes[link.To].Kind
	if link.Type == topo.LOC && far == topo.GPUNode {
		return false
	}
	return link.Type != topo.NVL || far != topo.DeviceNode || at.hops > deviceHops(g, base)
}

var ofLink = [...]Type{topo.LOC: LOC, topo.NVL: NVL, topo.C2C: C2C, topo.PCI: PIX, topo.SYS: SYS, topo.NET: LOC}

// typeAfter is the type of the path when the link is added to it.
func typeAfter(g *topo.Graph, base, node int, at *trail, link *topo.Link) Type {
	here, far, typ := g.Nodes[node].Kind, g.Nodes[link.To].Kind, ofLink[link.Type]
	if here == topo.SwitchNode && far == topo.SwitchNode {
		typ = PXB
	}
	if link.Type == topo.PCI && (here == topo.CPUNode || far == topo.CPUNode) {
		typ = PHB
	}
	if here == topo.DeviceNode && at.typ == NVL && typ == NVL && at.hops == deviceHops(g, base) {
		typ = NVB
	}
	return max(typ, at.typ)
}

// paths writes the trails out for the nodes that can be ends.
func paths(g *topo.Graph, best []trail) []Path {
	all := make([]Path, len(best))
	for n := range best {
		t := &best[n]
		if all[n] = nowhere; !t.known {
			continue
		}
		all[n] = Path{Type: t.typ, Bandwidth: t.bw, Via: -1}
		if k := g.Nodes[n].Kind; k != topo.GPUNode && k != topo.PortNode && k != topo.CPUNode {
			continue
		}
		all[n].Links = make([]int, 0, t.hops)
		for ; t.link >= 0; t = t.rest {
			all[n].Links = append(all[n].Links, t.link)
		}
	}
	return all
}
