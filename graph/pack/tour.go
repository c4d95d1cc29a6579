package pack

import "math"

// square is a matrix of costs between points: at(a, b) is what it costs to go from a to b.
type square struct {
	n int
	c []float64
}

func newSquare(n int) square { return square{n, make([]float64, n*n)} }

func (s square) at(a, b int) float64 { return s.c[a*s.n+b] }

func (s square) cost(tour []int) float64 {
	sum := 0.0
	for k, a := range tour {
		sum += s.at(a, tour[(k+1)%len(tour)])
	}
	return sum
}

// tours finds the cheapest closed tour through all points of a square, from the last point on. exact is the dynamic programme of
// M. Held and R. Karp ("A dynamic programming approach to sequencing problems", 1962): the cheapest way from the last point through a
// set of others to one of them, for each set and each last one, 2^n n^2 steps.
//
// Most prices are 0 or alike at an optimum, so a tour that costs less than one that is known is often ruled out without it. What the
// cheapest way out of each point costs, and then the cheapest into it, is taken off first: every tour pays it (J. Little and others,
// "An algorithm for the traveling salesman problem", 1963). And a tour is also a tree from its start, and one towards it.
type tours struct {
	tree arborescence
	back square
	less square    // the costs beyond what every tour pays
	best []float64 // of (set, last of it): set*n + last, far where last is not in the set
	into []float64 // less turned round: into[to*n+from]
	tour []int
	work int64
}

// exact finds the cheapest tour that costs less than most; nil if there is none.
func (t *tours) exact(s square, most float64) ([]int, float64) {
	n := s.n - 1 // points besides the one that tours start from
	t.tour = append(t.tour[:0], n)
	if n == 0 {
		return t.tour, s.at(0, 0)
	}
	paid := t.reduce(s)
	if enough := most * (1 - 1e-9); paid >= enough || n >= fewExact && paid+t.trees(n) >= enough {
		return nil, most
	}
	t.fill(n)
	full := 1<<n - 1
	last, cost := -1, most-paid
	for v := range n {
		if c := t.best[full*n+v] + t.less.at(v, n); c < cost {
			last, cost = v, c
		}
	}
	if last < 0 {
		return nil, most
	}
	t.trace(n, full, last)
	return t.tour, cost + paid
}

// atLeast is less than or as much as any tour costs, for squares too big for an exact one.
func (t *tours) atLeast(s square) float64 {
	paid := t.reduce(s)
	return paid + t.trees(s.n-1)
}

// trees is the cost of the cheapest tree from the last point or towards it, whichever costs more.
func (t *tours) trees(n int) float64 {
	t.back.n = t.less.n
	t.back.c = append(t.back.c[:0], t.less.c...)
	for a := range t.back.n {
		for b := range t.back.n {
			t.back.c[a*t.back.n+b] = t.less.at(b, a)
		}
	}
	return max(t.tree.cost(t.less, n), t.tree.cost(t.back, n))
}

// reduce takes off what every tour pays.
func (t *tours) reduce(s square) (paid float64) {
	n := s.n
	t.less.n = n
	t.less.c = append(t.less.c[:0], s.c...)
	for _, step := range [][2]int{{n, 1}, {1, n}} {
		for a := range n {
			least := math.Inf(1)
			for b := range n {
				if a != b {
					least = min(least, t.less.c[a*step[0]+b*step[1]])
				}
			}
			for b := range n {
				t.less.c[a*step[0]+b*step[1]] -= least
			}
			paid += least
		}
	}
	return paid
}

// fill goes through the sets in the order of their numbers, in which a set comes after its parts.
func (t *tours) fill(n int) {
	t.work += int64(n*n) << n / 2
	if len(t.best) < n<<n {
		t.best = make([]float64, n<<n)
	}
	t.into = t.into[:0]
	for to := range n {
		for from := range n {
			t.into = append(t.into, t.less.at(from, to))
		}
	}
	for set := 1; set < 1<<n; set++ {
		row := t.best[set*n : set*n+n]
		for to := range row {
			switch before := set &^ (1 << to); {
			case before == set:
				row[to] = 2 * far
			case before == 0:
				row[to] = t.less.at(n, to)
			default:
				row[to] = cheapest(t.best[before*n:before*n+n], t.into[to*n:to*n+n])
			}
		}
	}
}

// cheapest is the least sum of two entries of one place.
func cheapest(a, b []float64) float64 {
	least := a[0] + b[0]
	for k := 1; k < len(a) && k < len(b); k++ {
		if c := a[k] + b[k]; c < least {
			least = c
		}
	}
	return least
}

// trace walks back from the last point: the point before is one whose cost and step add up to the cost here.
func (t *tours) trace(n, set, last int) {
	start := len(t.tour)
	for {
		t.tour = append(t.tour, last)
		before := set &^ (1 << last)
		if before == 0 {
			break
		}
		from, least := -1, math.Inf(1)
		for v := range n {
			if before>>v&1 == 1 {
				if c := t.best[before*n+v] + t.less.at(v, last); c < least {
					from, least = v, c
				}
			}
		}
		set, last = before, from
	}
	back := t.tour[start:]
	for a, z := 0, len(back)-1; a < z; a, z = a+1, z-1 {
		back[a], back[z] = back[z], back[a]
	}
}
