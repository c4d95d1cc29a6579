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
type tours struct {
	best []float64 // of (set, last of it): set*n + last, far where last is not in the set
	into []float64 // costs turned round: into[to*n+from]
	tour []int
}

func (t *tours) exact(s square) ([]int, float64) {
	n := s.n - 1 // points besides the one that tours start from
	t.tour = append(t.tour[:0], n)
	if n == 0 {
		return t.tour, s.at(0, 0)
	}
	t.fill(s, n)
	full := 1<<n - 1
	last, cost := 0, math.Inf(1)
	for v := range n {
		if c := t.best[full*n+v] + s.at(v, n); c < cost {
			last, cost = v, c
		}
	}
	t.trace(s, n, full, last)
	return t.tour, cost
}

// fill goes through the sets in the order of their numbers, in which a set comes after its parts.
func (t *tours) fill(s square, n int) {
	if len(t.best) < n<<n {
		t.best = make([]float64, n<<n)
	}
	t.into = t.into[:0]
	for to := range n {
		for from := range n {
			t.into = append(t.into, s.at(from, to))
		}
	}
	for set := 1; set < 1<<n; set++ {
		row := t.best[set*n : set*n+n]
		for to := range row {
			switch before := set &^ (1 << to); {
			case before == set:
				row[to] = 2 * far
			case before == 0:
				row[to] = s.at(n, to)
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
func (t *tours) trace(s square, n, set, last int) {
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
				if c := t.best[before*n+v] + s.at(v, last); c < least {
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
