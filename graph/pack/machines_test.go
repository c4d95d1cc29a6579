package pack

import (
	"fmt"
	"math/rand"
)

// builder makes networks for tests by hand.
type builder struct {
	Network
	direct map[[2]int]int // link between two nodes
}

func build(nodes int) *builder {
	return &builder{Network: Network{Nodes: nodes}, direct: map[[2]int]int{}}
}

func (b *builder) link(from, to int, c float64) *builder {
	b.direct[[2]int{from, to}] = len(b.Links)
	b.Links = append(b.Links, Link{from, to, c})
	return b
}

func (b *builder) both(a, z int, c float64) *builder { return b.link(a, z, c).link(z, a, c) }

// done gives every pair of devices the route with the fewest links, in the order of the links where several are as short.
func (b *builder) done(gpus, nets []int) *Network {
	b.GPUs, b.Nets = gpus, nets
	devices := append(append([]int(nil), gpus...), nets...)
	out := make([][]int, b.Nodes)
	for k, l := range b.Links {
		out[l.From] = append(out[l.From], k)
	}
	b.Routes = make([][][]Use, len(devices))
	for i, from := range devices {
		b.Routes[i] = make([][]Use, len(devices))
		came := b.nearest(out, from)
		for j, to := range devices {
			if i != j && (i < len(gpus) || j < len(gpus)) && came[to] >= 0 {
				b.Routes[i][j] = b.route(came, from, to)
			}
		}
	}
	if err := b.Check(); err != nil {
		panic(err)
	}
	return &b.Network
}

// nearest is the link by which each node is first reached from a node, breadth-first, -1 where it is not.
func (b *builder) nearest(out [][]int, from int) []int {
	came := make([]int, b.Nodes)
	for k := range came {
		came[k] = -1
	}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		for _, k := range out[queue[0]] {
			if to := b.Links[k].To; to != from && came[to] < 0 {
				came[to] = k
				queue = append(queue, to)
			}
		}
	}
	return came
}

func (b *builder) route(came []int, from, to int) []Use {
	route := []Use{}
	for at := to; at != from; at = b.Links[came[at]].From {
		route = append([]Use{{Link: came[at], Factor: 1}}, route...)
	}
	return route
}

// nvswitch is n GPUs on one switch with 100 GB/s, and in pairs on PCI switches with 48 GB/s with a port of 50 GB/s at each.
//
//	0..n-1 GPUs, n the switch, then for each pair a PCI switch and a port
func nvswitch(n int) *Network {
	b := build(n + 1 + n)
	var gpus, nets []int
	for g := range n {
		b.both(g, n, 100)
		gpus = append(gpus, g)
	}
	for p := range n / 2 {
		pci, port := n+1+2*p, n+2+2*p
		b.both(2*p, pci, 48).both(2*p+1, pci, 48).both(pci, port, 50)
		nets = append(nets, port)
	}
	return b.done(gpus, nets)
}

// mesh is n GPUs with a direct link of 10 GB/s for each pair.
func mesh(n int) *Network {
	b := build(n)
	var gpus []int
	for a := range n {
		gpus = append(gpus, a)
		for z := range a {
			b.both(a, z, 10)
		}
	}
	return b.done(gpus, nil)
}

// line is n GPUs in a row, a PCI switch for each, and a port at the first.
func line(n int) *Network {
	b := build(2*n + 1)
	var gpus []int
	for g := range n {
		gpus = append(gpus, g)
		b.both(g, n+g, 24)
		if g > 0 {
			b.both(n+g-1, n+g, 12)
		}
	}
	return b.both(n, 2*n, 10).done(gpus, []int{2 * n})
}

// random is a connected network of up to five GPUs, three switches and two ports; links differ in their two directions.
func random(r *rand.Rand) *Network {
	gpus, switches, ports := 2+r.Intn(4), r.Intn(4), r.Intn(3)
	b := build(gpus + switches + ports)
	c := func() float64 { return float64(1 + r.Intn(40)) }
	for a := 1; a < b.Nodes; a++ {
		z := r.Intn(min(a, gpus+switches))
		b.link(a, z, c()).link(z, a, c())
	}
	for range r.Intn(2 * b.Nodes) {
		a, z := r.Intn(b.Nodes), r.Intn(b.Nodes)
		if _, there := b.direct[[2]int{a, z}]; a != z && !there {
			b.link(a, z, c())
		}
	}
	var devices [2][]int
	for k := range gpus {
		devices[0] = append(devices[0], k)
	}
	for k := range ports {
		devices[1] = append(devices[1], gpus+switches+k)
	}
	return b.done(devices[0], devices[1])
}

// even makes both directions of a network alike.
func even(n *Network) *Network {
	b := build(n.Nodes)
	for _, l := range n.Links {
		if _, there := b.direct[[2]int{l.To, l.From}]; !there {
			b.link(l.From, l.To, l.Cap)
		}
	}
	for _, l := range b.Links {
		b.link(l.To, l.From, l.Cap)
	}
	return b.done(n.GPUs, n.Nets)
}

// copies writes all hosts out as one network: host h has the nodes from h*Nodes on, the fabric is the last node.
func copies(n *Network, hosts int) *Network {
	b := build(hosts*n.Nodes + 1)
	var gpus []int
	for h := range hosts {
		for _, l := range n.Links {
			b.link(h*n.Nodes+l.From, h*n.Nodes+l.To, l.Cap)
		}
		for _, g := range n.GPUs {
			gpus = append(gpus, h*n.Nodes+g)
		}
		for _, p := range n.Nets {
			b.both(h*n.Nodes+p, hosts*n.Nodes, 1e6)
		}
	}
	b.GPUs = gpus
	return &b.Network
}

func name(n *Network) string {
	return fmt.Sprintf("%d GPUs, %d ports, links %v", len(n.GPUs), len(n.Nets), n.Links)
}
