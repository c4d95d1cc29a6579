package pack

import "math"

// Edge is one edge of a tree, from GPU to GPU over the links of Route. If it goes through the fabric, Route ends at a port and Back
// goes on from a port, which may be the same one of another host. GPUs are numbered as in the Network.
type Edge struct {
	From, To    int
	Route, Back []int
}

// Tree is one way of what a GPU sends: it reaches all GPUs of its own host.
type Tree struct {
	Root   int
	Weight float64 // GB/s of the root's data
	Edges  []Edge
}

// Spread is the same in each of the other hosts: edges with Enter come from GPU From of the root's host, the others are inside.
type Spread struct {
	Weight float64
	Enter  []Edge
	Edges  []Edge
}

// TreePacking is a set of trees for an all-gather that the links of all hosts hold together. A root's whole tree is one of its Trees
// and, in every other host, a Spread; which goes with which does not matter as long as the weights are used up (Whole).
type TreePacking struct {
	Trees   []Tree
	Spreads []Spread
	Share   float64 // GB/s that each rank sends to all others
	Bus     float64 // GB/s: Share times the other ranks
	Bound   float64 // proven for Bus, by these trees' own programme and by the limit
	Loads   []float64
}

// Trees packs trees into copies of host n for an all-gather: from every GPU as much as from any other. limit is Bound(n, hosts). Of
// hosts with more than mostRoots GPUs it finds none.
//
// All hosts are alike, so some best packing is alike for all (the mean of one turned round through the hosts), and then all that
// counts is what the roots of one host together put on the links of that host, and the roots of all others:
//
//	a tree from each root inside its host                           want 1 each
//	spreads in the host, each entered from the root's host by       want 1 for each root of each other host
//	the best way out there and the best way in here
//
// So the programme has one host's links for any number of hosts. No network is left out by this: a tree that enters a host twice is a
// spread with two entries, and a tree may leave its own host and come back.
func Trees(n *Network, hosts int, limit Limit, e Effort) TreePacking {
	none := TreePacking{Loads: make([]float64, len(n.Links))}
	if limit.Share <= 0 || len(n.GPUs) > mostRoots {
		return none
	}
	g := newGrower(n, hosts)
	hold := make([]float64, len(g.net.pipes))
	for k, q := range g.net.pipes {
		hold[k] = min(q.hold/limit.Share, 1e6)
	}
	want := make([]float64, len(n.GPUs), len(n.GPUs)+1)
	for k := range want {
		want[k] = 1
	}
	if hosts > 1 {
		want = append(want, float64(len(n.GPUs)*(hosts-1)))
	}
	g.want = want
	if len(hold)+len(want) > mostRows {
		return g.packing(greedy(g, hold, want, min(e.Rounds, 16), e.Work), hosts, limit, none)
	}
	p := newProgram(hold, want)
	p.warm(g, 12, e)
	p.generate(g, e)
	return g.packing(p.mix(), hosts, limit, none)
}

// mostRoots is how many GPUs a host may have for trees to be searched: each round finds one from every GPU, which takes seconds for a
// search with 72 and minutes with hundreds. Rings remain, and the bound says what they leave.
const mostRoots = 96

// grower finds the cheapest trees and spreads for given prices.
type grower struct {
	net   *plain
	want  []float64
	ways  []ways // from each GPU, then from the fabric
	cost  []float64
	c     square
	find  arborescence
	grown [][]branch // all that were handed out, by their columns' tags
	load  []float64
	work  int64
}

// branch is an edge in pipes; enter: from the root's host.
type branch struct {
	from, to int
	pipes    []int32
	enter    bool
}

func newGrower(n *Network, hosts int) *grower {
	g := &grower{net: newPlain(n, hosts)}
	g.ways = make([]ways, len(n.GPUs)+1)
	g.cost = make([]float64, len(g.net.pipes))
	g.load = make([]float64, len(g.net.pipes))
	return g
}

// hair is what a pipe costs beside its price, so that among ways that cost nothing the short ones are taken.
const hair = 1e-9

func (g *grower) spent() int64 { return g.work }

func (g *grower) price(price []float64, _ bool, found []column) ([]column, float64) {
	for k, p := range price {
		g.cost[k] = p + hair
	}
	g.work += int64(len(g.want) * (len(price) + len(g.want)*len(g.want)))
	gpus := len(g.net.gpus)
	for k, node := range g.net.gpus {
		g.ways[k].from(g.net, node, g.cost)
	}
	g.c = newSquare(gpus)
	for a := range gpus {
		for b, node := range g.net.gpus {
			g.c.c[a*gpus+b] = g.ways[a].cost[node]
		}
	}
	sum := 0.0
	for root := range gpus {
		var cost float64
		found, cost = g.tree(found, root)
		sum += cost
	}
	if len(g.want) > gpus {
		var cost float64
		found, cost = g.spread(found)
		sum += cost * g.want[gpus]
	}
	return found, max(0, sum-hair*float64(len(price)))
}

func (g *grower) tree(found []column, root int) ([]column, float64) {
	var edges []branch
	cost := 0.0
	row := g.c.c[root*g.c.n : (root+1)*g.c.n]
	for b := range row {
		row[b] -= hair / 2 // of edges that cost the same those from the root are taken: trees stay flat, and roots do not meet at one GPU
	}
	parents := g.find.solve(g.c, root)
	for b := range row {
		row[b] += hair / 2
	}
	for to, from := range parents {
		if from >= 0 {
			edges = append(edges, branch{from, to, g.ways[from].pipes(g.net, g.net.gpus[to]), false})
			cost += g.c.at(from, to)
		}
	}
	return g.keep(found, edges, root, cost), cost
}

// spread is a tree from one more point: the way out of the root's host, with the cheapest of its GPUs, and the fabric.
func (g *grower) spread(found []column) ([]column, float64) {
	gpus, fabric := len(g.net.gpus), g.net.fabric
	if fabric < 0 {
		return found, far
	}
	in := &g.ways[gpus]
	in.from(g.net, fabric, g.cost)
	exit, out := 0, math.Inf(1)
	for a := range gpus {
		if c := g.ways[a].cost[fabric]; c < out {
			exit, out = a, c
		}
	}
	c := newSquare(gpus + 1)
	for b, node := range g.net.gpus {
		for a := range gpus {
			c.c[a*c.n+b] = g.c.at(a, b)
		}
		c.c[gpus*c.n+b] = out + in.cost[node]
	}
	var edges []branch
	cost := 0.0
	for to, from := range g.find.solve(c, gpus) {
		switch {
		case from == gpus:
			pipes := append(g.ways[exit].pipes(g.net, fabric), in.pipes(g.net, g.net.gpus[to])...)
			edges = append(edges, branch{exit, to, pipes, true})
		case from >= 0:
			edges = append(edges, branch{from, to, g.ways[from].pipes(g.net, g.net.gpus[to]), false})
		default:
			continue
		}
		cost += c.at(from, to)
	}
	return g.keep(found, edges, gpus, cost), cost
}

func (g *grower) keep(found []column, edges []branch, demand int, cost float64) []column {
	if cost >= far {
		return found
	}
	clear(g.load)
	for _, e := range edges {
		for _, k := range e.pipes {
			g.load[k]++
		}
	}
	c := column{demand: demand, tag: len(g.grown)}
	for k, l := range g.load {
		if l > 0 {
			c.rows = append(c.rows, int32(k))
			c.loads = append(c.loads, l)
		}
	}
	g.grown = append(g.grown, edges)
	return append(found, c)
}
