package path

import "hccl.dev/hccl/graph/topo"

// Load is what one GB/s of a hop puts on a link.
type Load struct {
	Link   int
	Factor float64
}

// Loads are what a ring's hop puts on the links, as NCCL accounts it:
//
//   - an Intel host bridge passes data between PCI devices in small packets: a GPU's hop through one costs 6/5 on PCI links;
//   - a port's hop into a GPU before compute capability 8.0 costs 1/8 on the way back, for its read requests;
//   - NVLink into a POWER CPU takes both directions.
//
// A tree's hop is accounted on plain capacities: factor 1 on each of the path's links.
func (t *Table) Loads(from, to int) []Load {
	p, g := t.Between(from, to), t.Graph
	fromGPU := g.Nodes[from].Kind == topo.GPUNode
	pci := 1.0
	if fromGPU && p.Type == PHB && t.throughIntel(p) {
		pci = 6.0 / 5
	}
	loads := make([]Load, 0, len(p.Links)+1)
	for _, l := range p.Links {
		link, factor := &g.Links[l], 1.0
		if link.Type == topo.PCI {
			factor = pci
		}
		loads = append(loads, Load{l, factor})
		switch far := &g.Nodes[link.To]; {
		case far.Kind == topo.DeviceNode && far.GPU.SM < 80 && !fromGPU:
			loads = append(loads, Load{link.Reverse, factor / 8})
		case far.Kind == topo.CPUNode && far.CPU.Arch == "ppc64" && link.Type == topo.NVL:
			loads = append(loads, Load{link.Reverse, factor})
		}
	}
	return loads
}

func (t *Table) throughIntel(p Path) bool {
	for _, l := range p.Links {
		if far := &t.Graph.Nodes[t.Graph.Links[l].To]; far.Kind == topo.CPUNode && far.CPU.Intel() {
			return true
		}
	}
	return false
}
