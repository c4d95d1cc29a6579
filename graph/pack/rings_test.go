package pack

import (
	"fmt"
	"math"
	"math/rand"
	"reflect"
	"testing"
)

// holds checks that rings are what they say: every GPU once, and no link over what it holds, counted anew on the routes.
func holds(t *testing.T, n *Network, hosts int, p RingPacking) {
	t.Helper()
	loads, bus := make([]float64, len(n.Links)), 0.0
	for _, r := range p.Rings {
		bus += r.Weight
		seen := make([]int, len(n.GPUs))
		put := func(a, b int) {
			if n.Routes[a][b] == nil {
				t.Fatalf("%s: ring %v takes a route that is not there", name(n), r)
			}
			for _, u := range n.Routes[a][b] {
				loads[u.Link] += r.Weight * u.Factor
			}
		}
		byNet := hosts > 1 || len(r.Segments) > 1
		for _, s := range r.Segments {
			if (s.In >= 0) != byNet || (s.Out >= 0) != byNet {
				t.Fatalf("%s: segment %v of a ring %v", name(n), s, r)
			}
			stops := s.GPUs
			if byNet {
				put(len(n.GPUs)+s.In, s.GPUs[0])
				put(s.GPUs[len(s.GPUs)-1], len(n.GPUs)+s.Out)
			} else {
				stops = append(append([]int(nil), s.GPUs...), s.GPUs[0])
			}
			for k := 1; k < len(stops); k++ {
				put(stops[k-1], stops[k])
			}
			for _, g := range s.GPUs {
				seen[g]++
			}
		}
		for g, times := range seen {
			if times != 1 {
				t.Errorf("%s: ring %v passes GPU %d %d times", name(n), r, g, times)
			}
		}
	}
	near(t, "sum of weights", bus, p.Bus)
	for k, l := range n.Links {
		if loads[k] > l.Cap*1.000001 {
			t.Errorf("%s: link %d carries %g of %g", name(n), k, loads[k], l.Cap)
		}
	}
}

func ringsOf(t *testing.T, n *Network, hosts int) RingPacking {
	t.Helper()
	p := Rings(n, hosts, Bound(n, hosts), Thorough)
	holds(t, n, hosts, p)
	return p
}

func about(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.007*want {
		t.Errorf("%s: %.6g, want %.6g", what, got, want)
	}
}

func TestRingsOfKnownMachines(t *testing.T) {
	for _, c := range []struct {
		what  string
		n     *Network
		hosts int
		want  float64
	}{
		{"two GPUs", mesh(2), 1, 10},
		{"mesh of 3: both ways round", mesh(3), 1, 20},
		{"mesh of 8: all links full", mesh(8), 1, 70},
		{"line of 4", line(4), 1, 12},
		{"line of 4, twice", line(4), 2, 10},
		{"switch of 8", nvswitch(8), 1, 100},
		{"switch of 8, passed from end to end", nvswitch(8), 4, 100.0 * 8 / 7},
		{"one GPU a host", line(1), 3, 10},
	} {
		p := ringsOf(t, c.n, c.hosts)
		about(t, c.what, p.Bus, c.want)
		about(t, c.what+", bound", p.Bound, c.want)
	}
}

func TestUnequalPortsGetUnequalRings(t *testing.T) {
	b := build(5).both(0, 1, 100).both(0, 2, 50).both(2, 3, 40).both(1, 4, 12.5)
	p := ringsOf(t, b.done([]int{0, 1}, []int{3, 4}), 2)
	about(t, "both ports", p.Bus, 52.5)
}

func TestRingsMayLeaveByAnotherPort(t *testing.T) {
	b := build(4).both(0, 1, 100).link(2, 0, 10).link(0, 2, 1).link(1, 3, 10).link(3, 1, 1)
	p := ringsOf(t, b.done([]int{0, 1}, []int{2, 3}), 2)
	about(t, "by the same port", p.Bound, 2)
	about(t, "by any", p.Bus, 11)
}

// A slow way inside the host, ports that are faster: the ring is cut in two, as NCCL cuts such hosts.
func TestCutHostsGoRoundByTheNetwork(t *testing.T) {
	b := build(4).both(0, 1, 5).both(0, 2, 20).both(1, 3, 20)
	n := b.done([]int{0, 1}, []int{2, 3})
	n.Cut = true
	about(t, "one host", ringsOf(t, n, 1).Bus, 25)
	p := ringsOf(t, n, 1)
	if most := len(p.Rings[0].Segments); most != 2 && len(p.Rings[1].Segments) != 2 {
		t.Errorf("rings %v, want one of two segments", p.Rings)
	}
}

func TestNoRingsWhereThereAreNone(t *testing.T) {
	apart := build(3).both(0, 1, 5).done([]int{0, 1, 2}, nil)
	for what, p := range map[string]RingPacking{
		"a single rank": ringsOf(t, mesh(1), 1), "not joined": ringsOf(t, apart, 1), "no ports": ringsOf(t, mesh(3), 2),
	} {
		if len(p.Rings) > 0 || p.Bus != 0 {
			t.Errorf("%s: %v", what, p)
		}
	}
}

// everyRing is the optimum by a programme that has all rings from the start.
func everyRing(n *Network, limit Limit) float64 {
	w := newWalks(n, 1)
	hold := make([]float64, len(w.hold))
	for r, h := range w.hold {
		hold[r] = h / limit.Bus
	}
	s := newSimplex(hold, []float64{1})
	var visit func(order []int)
	visit = func(order []int) {
		if len(order) < w.gpus {
			for g := range w.gpus {
				if !contains(order, g) {
					visit(append(append([]int(nil), order...), g))
				}
			}
			return
		}
		load := make([]float64, len(hold))
		for k, a := range order {
			m := w.moves[w.move(a, order[(k+1)%len(order)])]
			if m == nil {
				return
			}
			for _, u := range m {
				load[u.row] += u.load
			}
		}
		c := column{}
		for r, l := range load {
			if l > 0 {
				c.rows, c.loads = append(c.rows, int32(r)), append(c.loads, l)
			}
		}
		s.add(c)
	}
	visit([]int{0})
	s.solve(1e9)
	return s.x() * limit.Bus
}

func contains(list []int, v int) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

func TestRingsAgainstAllRings(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	for range 200 {
		n := random(r)
		limit := Bound(n, 1)
		if limit.Bus == 0 {
			continue
		}
		p, want := ringsOf(t, n, 1), everyRing(n, limit)
		about(t, name(n), p.Bus, want)
		if p.Bound < want*0.9999 {
			t.Errorf("%s: bound %g is below %g, which rings reach", name(n), p.Bound, want)
		}
		if p.Bus > limit.Bus*1.000001 {
			t.Errorf("%s: rings of %g, no schedule exceeds %g", name(n), p.Bus, limit.Bus)
		}
	}
}

func TestRingsOfSeveralHostsHold(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	for k := range 200 {
		n := random(r)
		n.Cut = k%3 == 0
		for _, hosts := range []int{1, 2, 4} {
			p := ringsOf(t, n, hosts)
			if p.Bus > p.Cross*1.000001 {
				t.Errorf("%s on %d hosts: %g found, bound %g", name(n), hosts, p.Bus, p.Cross)
			}
		}
	}
}

func TestRingsAreTheSameEachTime(t *testing.T) {
	n := nvswitch(8)
	for hosts := range 3 {
		a, b := ringsOf(t, n, hosts+1), ringsOf(t, n, hosts+1)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%d hosts: %v, then %v", hosts+1, a, b)
		}
	}
}

// Hundreds of GPUs are beyond exact tours; what is found says how far it is from the bound.
func TestRingsOfManyGPUs(t *testing.T) {
	for _, g := range []int{14, 20, 64, 128} {
		n := nvswitch(g)
		p := Rings(n, 1, Bound(n, 1), Effort{Slack: 0.02, Rounds: 20, Work: 1e9})
		holds(t, n, 1, p)
		if p.Bus < 0.98*100 || p.Bound < p.Bus {
			t.Errorf("%d GPUs: rings of %g, bound %g; want 100 within 2 %%", g, p.Bus, p.Bound)
		}
	}
}

func TestQuickToursAreNearTheExact(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	var exact tours
	var quick descent
	for n := 1; n <= 10; n++ {
		s := newSquare(n)
		for k := range s.c {
			s.c[k] = 1 + r.Float64()
		}
		tour, cost := exact.exact(s, far)
		near(t, fmt.Sprint("cost of ", tour), s.cost(tour), cost)
		if q := s.cost(quick.from(s, 0)); n > 1 && (q < cost-1e-9 || q > 1.5*cost) {
			t.Errorf("%d points: %g quickly, %g exactly", n, q, cost)
		}
	}
}
