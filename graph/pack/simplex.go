package pack

import "math"

// column is one ring or tree in the programme: what a unit of its weight puts on each row, and the demand that it serves.
type column struct {
	rows   []int32
	loads  []float64
	demand int
	tag    int // for the pricer that made it
}

// simplex is the linear programme
//
//	maximise x   so that   sum of loads[row] * weight  <= hold[row]   for each row (links)
//	                       want[d] * x - weights of d  <= 0           for each demand d
//	                       x                           <= 1
//
// by the revised simplex method with the basis inverse written out: there are a few hundred rows at most, and columns keep coming.
// It starts from all slacks and is at a feasible point at any time. Rows are eased by small different amounts, so that no two of them
// are met at once and no step is empty; whoever uses the weights scales them to what the links really hold.
type simplex struct {
	links, demands int
	rows           int // links, then demands, then x <= 1
	want           []float64
	columns        []column
	in             []bool // which columns are in the basis
	basis          []int  // of each row of the inverse: a column, or one of the below
	inverse        [][]float64
	value          []float64 // of each basic variable
	price          []float64 // of each row: the dual values
	step, scratch  []float64
	xRow           int // row of the basis that holds x, -1 before it is in
	entries        int // of all columns
	work           int64
}

// Basis members that are no columns: x, and the slack of row r as slack-r.
const (
	isX   = -1
	slack = -2
)

const tiny = 1e-9

func newSimplex(hold, want []float64) *simplex {
	s := &simplex{links: len(hold), demands: len(want), rows: len(hold) + len(want) + 1, want: want, xRow: -1}
	s.inverse = make([][]float64, s.rows)
	all := make([]float64, s.rows*s.rows)
	for r := range s.rows {
		s.inverse[r], all = all[:s.rows:s.rows], all[s.rows:]
		s.inverse[r][r] = 1
		s.basis = append(s.basis, slack-r)
	}
	ease := newSpread()
	for r := range s.rows {
		v := 1e-7 * ease.next()
		if r < s.links {
			v = hold[r] * (1 + 1e-6*ease.next())
		} else if r == s.rows-1 {
			v = 1
		}
		s.value = append(s.value, v)
	}
	s.price = make([]float64, s.rows)
	s.step = make([]float64, s.rows)
	s.scratch = make([]float64, s.rows)
	return s
}

// spread gives numbers between 0.5 and 1 that look random and are always the same.
type spread uint64

func newSpread() *spread { s := spread(0x9E3779B97F4A7C15); return &s }

func (s *spread) next() float64 {
	x := uint64(*s)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*s = spread(x)
	return 0.5 + float64(x>>12)/(1<<53)
}

func (s *simplex) add(c column) {
	s.columns = append(s.columns, c)
	s.entries += len(c.rows)
	s.in = append(s.in, false)
}

// gain is what a unit of a column is worth at the present prices, more than 0 if it makes the programme better.
func (s *simplex) gain(c *column) float64 {
	g := s.price[s.links+c.demand]
	for k, r := range c.rows {
		g -= s.price[r] * c.loads[k]
	}
	return g
}

// solve goes from vertex to vertex until no column is worth anything, or until that much work is done: work counts numbers that are
// looked at, by all solves so far. Any vertex is a solution, if not the best.
func (s *simplex) solve(work int64) {
	if s.xRow < 0 {
		s.enter(isX)
	}
	for s.work < work {
		s.work += int64(s.entries + s.rows*s.rows)
		best, gain := 0, tiny
		for j := range s.columns {
			if !s.in[j] {
				if g := s.gain(&s.columns[j]); g > gain {
					best, gain = j, g
				}
			}
		}
		for r, p := range s.price {
			if -p > gain {
				best, gain = slack-r, -p
			}
		}
		if gain == tiny || !s.enter(best) {
			return
		}
	}
}

// enter lets a variable grow until a basic one is 0, and takes its place.
func (s *simplex) enter(v int) bool {
	s.direction(v)
	leave, least, size := -1, math.Inf(1), 0.0
	for r, d := range s.step {
		if d <= tiny {
			continue
		}
		if q := max(0, s.value[r]) / d; q < least-1e-12 || q <= least && d > size {
			leave, least, size = r, q, d
		}
	}
	if leave < 0 {
		return false
	}
	s.pivot(v, leave, least)
	return true
}

// direction is how the basic variables fall as v grows: the inverse times its column.
func (s *simplex) direction(v int) {
	for r, row := range s.inverse {
		d := 0.0
		switch {
		case v == isX:
			for k, w := range s.want {
				d += row[s.links+k] * w
			}
			d += row[s.rows-1]
		case v <= slack:
			d = row[slack-v]
		default:
			c := &s.columns[v]
			d = -row[s.links+c.demand]
			for k, l := range c.rows {
				d += row[l] * c.loads[k]
			}
		}
		s.step[r] = d
	}
}

func (s *simplex) pivot(v, leave int, amount float64) {
	if out := s.basis[leave]; out >= 0 {
		s.in[out] = false
	} else if out == isX {
		s.xRow = -1 // cannot be at an optimum; price below then is that of nothing
	}
	pivot := s.inverse[leave]
	for k := range pivot {
		pivot[k] /= s.step[leave]
	}
	for r, d := range s.step {
		if r == leave || d == 0 {
			continue
		}
		s.value[r] -= amount * d
		row := s.inverse[r]
		for k, p := range pivot {
			row[k] -= d * p
		}
	}
	s.value[leave], s.basis[leave] = amount, v
	if v >= 0 {
		s.in[v] = true
	} else if v == isX {
		s.xRow = leave
	}
	// Only x is worth anything in itself, so its row of the inverse is the prices.
	copy(s.price, s.inverse[max(s.xRow, 0)])
}

// weights of all columns, and the x that they serve: the worst served demand. They may be over what links hold by the easing.
func (s *simplex) weights() (w []float64, x float64) {
	w = make([]float64, len(s.columns))
	served := make([]float64, s.demands)
	for r, j := range s.basis {
		if j >= 0 && s.value[r] > tiny {
			w[j] = s.value[r]
			served[s.columns[j].demand] += w[j]
		}
	}
	x = math.Inf(1)
	for d, want := range s.want {
		x = min(x, served[d]/want)
	}
	return w, x
}

// x is the objective so far.
func (s *simplex) x() float64 {
	if s.xRow < 0 {
		return 0
	}
	return s.value[s.xRow]
}
