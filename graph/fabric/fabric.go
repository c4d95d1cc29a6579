// Package fabric is the network above the hosts as data: switches and hosts, the links between them, the ways through, and how
// groups of ranks that communicate at the same time share them.
//
//	ReadLLDP, ReadFile, FatTree, Dragonfly, RailOptimised   a Fabric: found, written down, or generated
//	Routes       the k shortest ways between two hosts
//	Spread       a way for each part of each flow, so that the most loaded link carries least
//	Near         which hosts hang on one switch, for the order of ranks
//
// All of it is a model of flows: a link carries up to its bandwidth in each direction, and what shares it shares alike. Results
// depend on the input alone, so that all ranks find the same.
package fabric

import "fmt"

// Kind is what a node is.
type Kind uint8

// The kinds.
const (
	Host Kind = iota // the end of a flow, never on the way of another's
	Switch
)

// Node is a host or a switch.
type Node struct {
	Name  string
	Kind  Kind
	Group int // of a dragonfly, pod of a fat tree, rail; -1: none
}

// Link is one direction of a connection. Parallel cables between two nodes are one link.
type Link struct {
	From, To int     // numbers of nodes
	GBps     float64 // 10^9 bytes per second
	Length   float64 // what it counts for on a way, 1 for a common link
}

// Fabric is a network.
type Fabric struct {
	Nodes []Node
	Links []Link
	// Assumed says in words what is not known and was assumed; empty where everything was told.
	Assumed string

	byName map[string]int
	byEnds map[[2]int]int
}

// New returns a network without nodes.
func New() *Fabric { return &Fabric{byName: map[string]int{}, byEnds: map[[2]int]int{}} }

// Add adds a node and returns its number.
func (f *Fabric) Add(name string, kind Kind, group int) (int, error) {
	if name == "" {
		return 0, fmt.Errorf("a node of a fabric has no name")
	}
	if _, ok := f.byName[name]; ok {
		return 0, fmt.Errorf("there are two nodes called %q in the fabric: give each its own name", name)
	}
	n := len(f.Nodes)
	f.byName[name] = n
	f.Nodes = append(f.Nodes, Node{name, kind, group})
	return n, nil
}

// Find returns the number of the node with this name, -1 if there is none.
func (f *Fabric) Find(name string) int {
	if n, ok := f.byName[name]; ok {
		return n
	}
	return -1
}

// Connect joins two nodes by a cable of so many GB/s each way.
func (f *Fabric) Connect(a, b int, gbps float64) error { return f.ConnectFar(a, b, gbps, 1) }

// ConnectFar is Connect with the length that the cable counts for on a way.
func (f *Fabric) ConnectFar(a, b int, gbps, length float64) error {
	switch {
	case a < 0 || b < 0 || a >= len(f.Nodes) || b >= len(f.Nodes):
		return fmt.Errorf("a link joins nodes %d and %d, there are %d", a, b, len(f.Nodes))
	case a == b:
		return fmt.Errorf("a link joins %s to itself", f.Nodes[a].Name)
	case !(length > 0 && length < 1e9):
		return fmt.Errorf("the link between %s and %s has length %v: wanted is a number above 0", f.Nodes[a].Name, f.Nodes[b].Name, length)
	case !(gbps > 0 && gbps < 1e9): // also NaN
		return fmt.Errorf("the link between %s and %s has %v GB/s: wanted is a number above 0", f.Nodes[a].Name, f.Nodes[b].Name, gbps)
	}
	f.link(a, b, gbps, length)
	f.link(b, a, gbps, length)
	return nil
}

func (f *Fabric) link(from, to int, gbps, length float64) {
	ends := [2]int{from, to}
	if l, ok := f.byEnds[ends]; ok {
		f.Links[l].GBps += gbps
		return
	}
	f.byEnds[ends] = len(f.Links)
	f.Links = append(f.Links, Link{from, to, gbps, length})
}

// Hosts are the numbers of the hosts, in the order in which they were added.
func (f *Fabric) Hosts() (hosts []int) {
	for n := range f.Nodes {
		if f.Nodes[n].Kind == Host {
			hosts = append(hosts, n)
		}
	}
	return hosts
}

// Near tells for each host, in the order of Hosts, the switch that it hangs on; the first one added where there are several, -1
// where there is none. Hosts with one number are one step apart.
func (f *Fabric) Near() []int {
	first := make([]int, len(f.Nodes))
	for n := range first {
		first[n] = -1
	}
	for _, l := range f.Links {
		if f.Nodes[l.To].Kind == Switch && (first[l.From] < 0 || l.To < first[l.From]) {
			first[l.From] = l.To
		}
	}
	var near []int
	for _, h := range f.Hosts() {
		near = append(near, first[h])
	}
	return near
}
