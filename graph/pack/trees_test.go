package pack

import (
	"math"
	"math/rand"
	"reflect"
	"testing"
)

// grove writes a packing out for all hosts and checks it there: every tree reaches every GPU once from its root over routes that
// join, no link of any host carries more than it holds, and every root sends as much as is said.
type grove struct {
	t     *testing.T
	n     *Network
	hosts int
	loads []float64 // of link l on host h: h*links+l
}

func treesOf(t *testing.T, n *Network, hosts int) TreePacking {
	t.Helper()
	p := Trees(n, hosts, Bound(n, hosts), Thorough)
	g := &grove{t, n, hosts, make([]float64, hosts*len(n.Links))}
	for host := range hosts {
		for root := range n.GPUs {
			sent := 0.0
			p.Whole(root, func(w float64, inside []Edge, beyond *Spread) {
				sent += w
				g.tree(host, root, w, inside, beyond)
			})
			near(t, name(n)+": sent by a root", sent, p.Share)
		}
	}
	for k, load := range g.loads {
		l := k % len(n.Links)
		if load > n.Links[l].Cap*1.000001 {
			t.Errorf("%s, %d hosts: link %d carries %g of %g", name(n), hosts, l, load, n.Links[l].Cap)
		}
		if math.Abs(load-p.Loads[l]) > 1e-4*(1+load) {
			t.Errorf("%s, %d hosts: link %d carries %g, said are %g", name(n), hosts, l, load, p.Loads[l])
		}
	}
	return p
}

func (g *grove) tree(host, root int, w float64, inside []Edge, beyond *Spread) {
	gpus := len(g.n.GPUs)
	before := make([]int, g.hosts*gpus)
	for k := range before {
		before[k] = -1
	}
	edge := func(e Edge, fromHost, toHost int) {
		g.route(e, fromHost, toHost, w)
		if to := toHost*gpus + e.To; before[to] < 0 && to != host*gpus+root {
			before[to] = fromHost*gpus + e.From
		} else {
			g.t.Fatalf("%s: GPU %d is reached twice", name(g.n), to)
		}
	}
	for _, e := range inside {
		edge(e, host, host)
	}
	for h := range g.hosts {
		if h != host {
			for _, e := range beyond.Enter {
				edge(e, host, h)
			}
			for _, e := range beyond.Edges {
				edge(e, h, h)
			}
		}
	}
	for k := range before {
		steps := 0
		for at := k; at != host*gpus+root; at = before[at] {
			if steps++; before[at] < 0 || steps > len(before) {
				g.t.Fatalf("%s: GPU %d is not reached from GPU %d of host %d", name(g.n), k, root, host)
			}
		}
	}
}

func (g *grove) route(e Edge, host, toHost int, w float64) {
	at := g.n.GPUs[e.From]
	walk := func(links []int, host int) {
		for _, l := range links {
			if g.n.Links[l].From != at {
				g.t.Fatalf("%s: edge %v breaks at link %d", name(g.n), e, l)
			}
			g.loads[host*len(g.n.Links)+l] += w
			at = g.n.Links[l].To
		}
	}
	walk(e.Route, host)
	if len(e.Back) > 0 {
		if !contains(g.n.Nets, at) || !contains(g.n.Nets, g.n.Links[e.Back[0]].From) {
			g.t.Fatalf("%s: edge %v enters or leaves the fabric beside a port", name(g.n), e)
		}
		host, at = toHost, g.n.Links[e.Back[0]].From
		walk(e.Back, host)
	}
	if at != g.n.GPUs[e.To] || host != toHost {
		g.t.Fatalf("%s: edge %v ends at node %d of host %d", name(g.n), e, at, host)
	}
}

func TestTreesOfKnownMachines(t *testing.T) {
	for _, c := range []struct {
		what  string
		n     *Network
		hosts int
		want  float64
	}{
		{"two GPUs", mesh(2), 1, 10},
		{"mesh of 8", mesh(8), 1, 70},
		{"line of 4", line(4), 1, 12},
		{"switch of 8, PCI beside it", nvswitch(8), 1, 148},
		{"switch of 8, twice", nvswitch(8), 2, 148},
		{"switch of 8, many times", nvswitch(8), 64, 148},
		{"line of 2, many times: the port", line(2), 64, 10.0 * 127 / (2 * 63)},
		{"one GPU a host", line(1), 3, 10},
	} {
		p := treesOf(t, c.n, c.hosts)
		about(t, c.what, p.Bus, c.want)
		about(t, c.what+", bound", p.Bound, c.want)
	}
}

// By Edmonds' theorem the bound is reached, also through switches that cannot copy, if every node can pass on what it can take in.
func TestTreesReachTheBound(t *testing.T) {
	r := rand.New(rand.NewSource(6))
	for k := range 150 {
		n := even(random(r))
		n.Cut = k%3 == 0
		for _, hosts := range []int{1, 2, 4} {
			limit := Bound(n, hosts)
			about(t, name(n), treesOf(t, n, hosts).Bus, limit.Bus)
		}
	}
}

// Elsewhere it need not be reached, but what is found holds, and is what its own programme proves to be the most.
func TestTreesOfLopsidedNetworks(t *testing.T) {
	r := rand.New(rand.NewSource(8))
	for range 100 {
		n := random(r)
		for _, hosts := range []int{1, 3} {
			if p := treesOf(t, n, hosts); p.Bus > 0 {
				about(t, name(n), p.Bus, p.Bound)
			}
		}
	}
}

func TestTreesBackwardsForReduceScatter(t *testing.T) {
	b := build(3).link(0, 1, 10).link(1, 2, 10).link(2, 0, 10).link(1, 0, 1)
	n := b.done([]int{0, 1, 2}, nil)
	if n.Duplex() || !mesh(3).Duplex() {
		t.Error("duplex is what holds the same both ways")
	}
	back := n.Reversed()
	p := Trees(back, 1, Bound(back, 1), Thorough)
	about(t, "backwards", p.Bus, Bound(back, 1).Bus)
}

func TestTreesAreTheSameEachTime(t *testing.T) {
	n := nvswitch(8)
	if a, b := treesOf(t, n, 2), treesOf(t, n, 2); !reflect.DeepEqual(a, b) {
		t.Errorf("%v, then %v", a, b)
	}
}

func TestNoTreesWhereThereAreNone(t *testing.T) {
	for _, p := range []TreePacking{treesOf(t, mesh(1), 1), treesOf(t, mesh(2), 2), treesOf(t, build(2).done([]int{0, 1}, nil), 1)} {
		if p.Bus != 0 || len(p.Trees) > 0 {
			t.Errorf("%v, want nothing", p)
		}
	}
}

func cheapestTree(c square, root int) float64 {
	best, parent := math.Inf(1), make([]int, c.n)
	var choose func(v int, cost float64)
	choose = func(v int, cost float64) {
		if v == c.n {
			for at := range parent {
				for steps := 0; at != root; at = parent[at] {
					if steps++; steps > c.n {
						return
					}
				}
			}
			best = min(best, cost)
			return
		}
		if v == root {
			choose(v+1, cost)
			return
		}
		for u := range c.n {
			if u != v {
				parent[v] = u
				choose(v+1, cost+c.at(u, v))
			}
		}
	}
	choose(0, 0)
	return best
}

func TestArborescenceAgainstAllTrees(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	var a arborescence
	for k := range 2000 {
		c := newSquare(1 + k%6)
		for i := range c.c {
			c.c[i] = float64(r.Intn(20))
		}
		root, cost := r.Intn(c.n), 0.0
		for v, u := range a.solve(c, root) {
			if u >= 0 {
				cost += c.at(u, v)
			} else if v != root {
				t.Fatalf("%v: point %d is not reached", c, v)
			}
		}
		if want := cheapestTree(c, root); math.Abs(cost-want) > 1e-9 {
			t.Errorf("%v from %d: %g, want %g", c, root, cost, want)
		}
	}
}
