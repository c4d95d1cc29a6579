package pack

import "math"

// guide finds the cheapest ring for given prices. A ring through several hosts passes each of them as a tour from a port and back, so
// the port is one more point beside the GPUs.
type guide struct {
	w     *walks
	cross bool   // a ring may leave by another port than it came in by
	rings []Ring // all that were handed out, by their columns' tags
	s     square
	exact tours
	quick descent
	turn  int
	load  []float64
}

// Points for which the exact tour is found in each round; up to mostExact it is found where the quick way finds nothing any more, and
// beyond that no tour is proven to be the cheapest.
const (
	fewExact  = 12
	mostExact = 17
	// mostProven is up to how many points it is told what the cheapest tour costs at least: the trees that tell it take the cube of them.
	mostProven = 400
)

func newGuide(w *walks) *guide {
	g := &guide{w: w, load: make([]float64, len(w.hold))}
	points := w.gpus
	if !w.closed {
		points++
	}
	g.s = newSquare(points)
	return g
}

func (g *guide) spent() int64 { return g.exact.work + g.quick.work }

func (g *guide) price(price []float64, exact bool, found []column) ([]column, float64) {
	g.w.reprice(price)
	g.hops()
	exact = exact || g.s.n <= fewExact
	switch {
	case g.w.closed && g.w.fabric:
		found, _ = g.inside(found, exact)
		fallthrough
	case g.w.closed:
		return g.tour(found, -1, exact)
	case g.cross:
		return g.tour(found, g.w.nets, exact)
	case g.s.n <= fewExact:
		return g.ports(found)
	}
	return g.slowly(found, exact)
}

func (g *guide) hops() {
	for a := range g.w.gpus {
		for b := range g.w.gpus {
			g.s.c[a*g.s.n+b], _, _ = g.w.hop(a, b)
		}
	}
}

// inside finds rings that stay in a host although they could leave it: those that leave it cheapest may do so once only, and then there
// is no such ring.
func (g *guide) inside(found []column, exact bool) ([]column, float64) {
	g.w.fabric = false
	g.hops()
	found, cost := g.tour(found, -1, exact)
	g.w.fabric = true
	g.hops()
	return found, cost
}

// ports finds the cheapest ring by each port.
func (g *guide) ports(found []column) ([]column, float64) {
	least := math.Inf(1)
	for p := range g.w.nets {
		var cost float64
		found, cost = g.tour(found, p, true)
		least = min(least, cost)
	}
	return found, least
}

// slowly is ports for hosts on which an exact tour takes milliseconds: it begins with what the quick way finds.
func (g *guide) slowly(found []column, exact bool) ([]column, float64) {
	found, least := g.quickly(found)
	if !exact {
		return found, 0
	}
	for p := range g.w.nets {
		g.doors(p)
		found, least = g.prove(found, p, least)
	}
	return found, least
}

// prove finds a tour that costs less than the cheapest so far, or that there is none. Of very many points it is only told what the cheapest
// costs at least.
func (g *guide) prove(found []column, port int, least float64) ([]column, float64) {
	switch {
	case g.s.n > mostProven:
		return found, 0
	case g.s.n > mostExact:
		return found, min(least, g.exact.atLeast(g.s))
	}
	if tour, cost := g.exact.exact(g.s, least); tour != nil {
		return g.keep(found, tour, port), cost
	}
	return found, least
}

// quickly starts at the port, and at a GPU that is another one each time. With very many points it tries only some of the ports in turn.
func (g *guide) quickly(found []column) ([]column, float64) {
	least := math.Inf(1)
	g.turn++
	for p := range g.w.nets {
		if g.s.n > mostExact && (p+g.turn)%((g.w.nets+3)/4) > 0 {
			continue
		}
		g.doors(p)
		for _, start := range [...]int{g.turn % g.s.n, g.s.n - 1} {
			tour := g.quick.from(g.s, start)
			least = min(least, g.s.cost(tour))
			found = g.keep(found, tour, p)
		}
	}
	return found, least
}

// tour adds the cheapest ring by a port (-1: by none; nets: by any), and returns what it costs or, where that is not proven, 0.
func (g *guide) tour(found []column, port int, exact bool) ([]column, float64) {
	if port >= 0 {
		g.doors(port)
	}
	if exact && g.s.n <= fewExact {
		tour, cost := g.exact.exact(g.s, far)
		return g.keep(found, tour, port), cost
	}
	starts, least := g.s.n, math.Inf(1)
	if starts > mostExact {
		starts = 2
	}
	for range starts {
		g.turn++
		tour := g.quick.from(g.s, g.turn%g.s.n)
		least = min(least, g.s.cost(tour))
		found = g.keep(found, tour, port)
	}
	if !exact {
		return found, 0
	}
	return g.prove(found, port, least)
}

// doors makes the port the last point: what it costs from it into each GPU, and from each GPU to it.
func (g *guide) doors(port int) {
	last := g.s.n - 1
	for a := range g.w.gpus {
		in, out := g.w.gpus+port, g.w.gpus+port
		if port == g.w.nets {
			in, out = g.entry(a), g.exit(a)
		}
		g.s.c[last*g.s.n+a] = g.w.cost[g.w.move(in, a)]
		g.s.c[a*g.s.n+last] = g.w.cost[g.w.move(a, out)]
	}
	g.s.c[last*g.s.n+last] = far
}

func (g *guide) entry(a int) int {
	_, p := g.w.port(func(p int) float64 { return g.w.cost[g.w.move(p, a)] })
	return p
}

func (g *guide) exit(a int) int {
	_, p := g.w.port(func(p int) float64 { return g.w.cost[g.w.move(a, p)] })
	return p
}

// keep makes a column of a tour, if it is one that exists.
func (g *guide) keep(found []column, tour []int, port int) []column {
	if tour == nil || g.s.cost(tour) >= far {
		return found
	}
	ring := g.ring(tour, port)
	if g.w.closed && len(ring.Segments) == 1 && ring.Segments[0].Out >= 0 {
		return g.twice(found, tour, port)
	}
	clear(g.load)
	g.w.loads(&ring, g.load)
	c := column{tag: len(g.rings)}
	for r, l := range g.load {
		if l > 0 {
			c.rows = append(c.rows, int32(r))
			c.loads = append(c.loads, l)
		}
	}
	g.rings = append(g.rings, ring)
	return append(found, c)
}

// twice keeps a tour that leaves the host and comes back once only, which is no ring of segments: it has to do so a second time, where
// that costs least.
func (g *guide) twice(found []column, tour []int, port int) []column {
	least := math.Inf(1)
	for k, a := range tour {
		b := tour[(k+1)%len(tour)]
		inside, out, _ := g.w.hop(a, b)
		if by, _, _ := g.w.byFabric(a, b); out < 0 && by-inside < least {
			g.w.forced, least = g.w.move(a, b), by-inside
		}
	}
	if g.w.forced >= 0 && least < far {
		found = g.keep(found, tour, port)
	}
	g.w.forced = -1
	return found
}

// ring turns the tour so that it begins after the port, or after a hop through the fabric, and cuts it where it leaves the host.
func (g *guide) ring(tour []int, port int) Ring {
	n := len(tour)
	at := 0
	for k, a := range tour {
		if a == g.w.gpus {
			at = k + 1
		} else if _, out, _ := g.w.hop(a, tour[(k+1)%n]); out >= 0 && port < 0 {
			at = k + 1
		}
	}
	s := Segment{In: -1, Out: -1}
	var ring Ring
	for k := range g.w.gpus {
		a := tour[(at+k)%n]
		s.GPUs = append(s.GPUs, a)
		if k == g.w.gpus-1 {
			break
		}
		if _, out, in := g.w.hop(a, tour[(at+k+1)%n]); out >= 0 {
			s.Out = out - g.w.gpus
			ring.Segments = append(ring.Segments, s)
			s = Segment{In: in - g.w.gpus, Out: -1}
		}
	}
	ring.Segments = append(ring.Segments, s)
	g.close(&ring, port)
	return ring
}

// close joins the last segment to the first.
func (g *guide) close(ring *Ring, port int) {
	first, last := &ring.Segments[0], &ring.Segments[len(ring.Segments)-1]
	a, z := first.GPUs[0], last.GPUs[len(last.GPUs)-1]
	switch {
	case port < 0:
		if _, out, in := g.w.hop(z, a); out >= 0 && g.w.gpus > 1 {
			first.In, last.Out = in-g.w.gpus, out-g.w.gpus
		}
	case port == g.w.nets:
		first.In, last.Out = g.entry(a)-g.w.gpus, g.exit(z)-g.w.gpus
	default:
		first.In, last.Out = port, port
	}
}
