// Package path finds how data go between two devices of a host: the one fixed way that NCCL takes for a pair, with its type, its
// bandwidth and its links, and what a ring's hop puts on each link.
//
//	New       all pairs of GPUs, ports and NUMA nodes: breadth first outwards from each (search.go), then the rules that send
//	          some pairs over the CPU, over the GPU beside a port, or to the network (rules.go, port.go)
//	Between   a pair's path
//	Loads     what one hop puts on the links of its path, with NCCL's factors (loads.go)
//	Ways      several ways of one pair that add up (ways.go)
//	Explain   why a pair goes the way it goes and not another (explain.go)
//
// A path's type is that of its worst link, its bandwidth that of its narrowest. Of two paths the better type wins, then the
// bandwidth, then the fewer hops, then the order of the source. All of it is arithmetic on a topo.Graph. Callers are package pack,
// which searches rings and trees over these paths, and the tool.
package path

import (
	"slices"

	"hccl.dev/hccl/graph/topo"
)

// Type orders paths from best to worst.
type Type uint8

// The types, by NCCL's names.
const (
	LOC Type = iota // the same device
	NVL             // NVLink, direct or through a switch
	NVB             // NVLink through another GPU
	C2C             // chip to chip
	PIX             // one PCI switch
	PXB             // several PCI switches
	P2C             // C2C to the CPU, then PCI to a port
	PXN             // NVLink to the GPU beside the port
	PHB             // through a CPU
	SYS             // between NUMA nodes
	NET             // left to the network
	DIS             // not connected
)

var names = [...]string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"}

func (t Type) String() string { return names[t] }

// Path is the way from one node to another.
type Path struct {
	Type      Type
	Bandwidth float64 // GB/s
	Links     []int   // of the graph, in order; empty from a node to itself and where there is no way
	Via       int     // the node that relays by a rule, -1: none
}

var nowhere = Path{Type: DIS, Via: -1}

// Exists reports whether there is a way at all.
func (p Path) Exists() bool { return p.Type < NET }

// before reports whether p is the better path.
func (p Path) before(q Path) bool {
	switch {
	case p.Type != q.Type:
		return p.Type < q.Type
	case p.Bandwidth != q.Bandwidth:
		return p.Bandwidth > q.Bandwidth
	}
	return len(p.Links) < len(q.Links)
}

// Table has the paths between all GPUs, ports and NUMA nodes of a host.
type Table struct {
	Graph *topo.Graph
	paths [][]Path        // to the end of that number (see ends), from each node
	ends  []int           // of each node its number, -1 of those that are no ends
	rules map[pair][]rule // what changed a pair's path, in order
	// Groups is, for each GPU of Graph.GPUs, the number of the group that NCCL would have it in: it cuts a host where each of two
	// GPUs has a port near by that is faster than the path between them.
	Groups []int
}

type pair struct{ from, to int }

// New computes all paths.
func New(g *topo.Graph) *Table {
	t := &Table{Graph: g, ends: slices.Repeat([]int{-1}, len(g.Nodes)), rules: map[pair][]rule{}}
	for _, list := range [][]int{g.CPUs, g.GPUs, g.Ports} {
		for _, n := range list {
			t.ends[n] = len(t.paths)
			t.paths = append(t.paths, search(g, n, nil))
		}
	}
	t.withoutP2P()
	t.cut()
	t.chipToPorts()
	t.portRules()
	return t
}

// Between is the path from a node to a GPU, port or NUMA node.
func (t *Table) Between(from, to int) Path {
	if t.ends[to] < 0 {
		return nowhere
	}
	return t.paths[t.ends[to]][from]
}

func (t *Table) at(from, to int) *Path { return &t.paths[t.ends[to]][from] }
