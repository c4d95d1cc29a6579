// Package pack finds how much data a machine can move in rings and trees, and how: it packs weighted rings and trees into the links
// of hosts and proves how far from the optimum the packing is. It is arithmetic alone: values in, values out, no I/O, no clock, no
// random source, no order of maps, so that every rank that asks gets the same answer.
//
// What it is given is a Network: nodes, directed links with capacities, GPUs, network ports, and the one fixed route between
// every two of them. All hosts of a search are copies of it, joined by a fabric that never limits. What it returns:
//
//	Bound    what no schedule can beat, by maximum flow                                bound.go, flow.go
//	Rings    weighted rings on the fixed routes, with a proven upper bound             rings.go, walk.go, descend.go
//	Trees    weighted trees from every GPU on any routes, for all-gather,              trees.go, arborescence.go, spread.go
//	         reduce-scatter and all-reduce
//	Join     channels through the ranks of a job, whose hosts may differ                 join.go
//	Verify   whether rings or trees that another rank found hold                         verify.go
//
// Rings and trees are found in the same way, by column generation (Gilmore and Gomory, "A linear programming approach to the cutting
// stock problem", 1961). A linear programme, simplex.go, weighs those rings or trees that are known so that the links hold them;
// its dual values are prices of links; an exact algorithm finds the cheapest ring (Held and Karp, 1962) or tree (Edmonds, 1967) at
// these prices. If it costs less than it earns it joins the programme, and if not the weights are optimal. Any prices at all give an
// upper bound, which is what the search is stopped by: generate.go.
//
// Bandwidths are GB/s. A ring's weight is the bus bandwidth it adds; a tree's weight is what its root sends into it.
package pack

import "fmt"

// Link is one direction of a link between two nodes.
type Link struct {
	From, To int
	Cap      float64 // GB/s
}

// Use is what one unit of traffic on a route puts on a link: 1, or what the host makes of it (6/5 through some host bridges).
type Use struct {
	Link   int
	Factor float64
}

// mostCap is more than any link has, GB/s: what is wider never limits.
const mostCap = 1e6

// Network is one host. Devices are numbered with the GPUs first, then the network ports.
type Network struct {
	Nodes int
	Links []Link
	GPUs  []int // their nodes, all different
	Nets  []int // nodes of the network ports: all traffic of a port passes its node
	// Routes has a row for each device and in it the fixed route to each device, nil where there is none. Between ports there is none.
	Routes [][][]Use
	// Cut says that some pairs of GPUs are better joined by the network than inside the host: traffic may leave and come back.
	Cut bool
}

// Check says what is wrong with a network, so that the algorithms need not ask.
func (n *Network) Check() error {
	for k, l := range n.Links {
		if l.From < 0 || l.From >= n.Nodes || l.To < 0 || l.To >= n.Nodes || !(l.Cap > 0) || l.Cap > mostCap {
			return fmt.Errorf("link %d from node %d to node %d with %g GB/s: want nodes below %d and more than 0, at most %g GB/s",
				k, l.From, l.To, l.Cap, n.Nodes, float64(mostCap))
		}
	}
	seen := make([]bool, n.Nodes)
	for _, node := range append(append([]int(nil), n.GPUs...), n.Nets...) {
		if node < 0 || node >= n.Nodes || seen[node] {
			return fmt.Errorf("device at node %d: want nodes below %d, each once", node, n.Nodes)
		}
		seen[node] = true
	}
	return n.checkRoutes()
}

func (n *Network) checkRoutes() error {
	devices := len(n.GPUs) + len(n.Nets)
	if len(n.Routes) != devices {
		return fmt.Errorf("routes from %d of %d devices", len(n.Routes), devices)
	}
	for a, row := range n.Routes {
		if len(row) != devices {
			return fmt.Errorf("device %d has routes to %d of %d devices", a, len(row), devices)
		}
		for b, route := range row {
			for _, u := range route {
				if u.Link < 0 || u.Link >= len(n.Links) || !(u.Factor > 0) {
					return fmt.Errorf("route from device %d to %d uses link %d by a factor of %g", a, b, u.Link, u.Factor)
				}
			}
		}
	}
	return nil
}

// MostGPUs is how many GPUs a host may have to be searched. What is found of a host grows with the square of them, and the time with more:
// this many take some seconds, 3,000 gigabytes and most of an hour.
const MostGPUs = 512

// Searchable says why a host with so many GPUs is not searched, before anything is made of it.
func Searchable(gpus int) error {
	if gpus <= MostGPUs {
		return nil
	}
	return fmt.Errorf("%d GPUs on a host are more than the %d that are searched", gpus, MostGPUs)
}

// Reversed is the network with every link turned round: what leaves there arrives here.
func (n *Network) Reversed() *Network {
	r := &Network{Nodes: n.Nodes, GPUs: n.GPUs, Nets: n.Nets, Cut: n.Cut, Links: make([]Link, len(n.Links))}
	for k, l := range n.Links {
		r.Links[k] = Link{From: l.To, To: l.From, Cap: l.Cap}
	}
	return r
}

// Duplex tells whether both directions between any two nodes hold the same, so that a tree reversed is as good as the tree.
func (n *Network) Duplex() bool {
	held := map[[2]int]float64{}
	for _, l := range n.Links {
		held[[2]int{l.From, l.To}] += l.Cap
	}
	for ends, c := range held {
		if back := held[[2]int{ends[1], ends[0]}]; back < c*0.9999 || back > c*1.0001 {
			return false
		}
	}
	return true
}
