package pack

import "math"

// descent finds cheap tours without a proof, for machines on which the exact way would take too long: from the nearest next point
// on, by moving stretches elsewhere until nothing gets cheaper.
type descent struct {
	tour, next []int
	used       []bool
	work       int64
}

// from starts at a point and always goes on to the cheapest next one.
func (d *descent) from(s square, start int) []int {
	d.used = append(d.used[:0], make([]bool, s.n)...)
	d.tour = append(d.tour[:0], start)
	d.used[start] = true
	d.work += int64(s.n * s.n)
	for at := start; len(d.tour) < s.n; {
		next, least := -1, math.Inf(1)
		for v := range s.n {
			if c := s.at(at, v); !d.used[v] && (next < 0 || c < least) {
				next, least = v, c
			}
		}
		d.used[next] = true
		d.tour = append(d.tour, next)
		at = next
	}
	d.improve(s)
	return d.tour
}

// mostImproved is the work that one tour is worth: with some hundred points no tour needs as much, with thousands none would end.
const mostImproved = 2e7

// improve moves stretches of up to a third of the tour, in their direction or turned round, to where they cost least.
func (d *descent) improve(s square) {
	n, end := s.n, d.work+mostImproved
	for better := n > 3; better; {
		better = false
		for length := 1; length <= max(1, min(n/3, 8)); length++ {
			for at := 0; at < n; at++ {
				for d.work < end && d.move(s, at, length) {
					better = true
				}
				if d.work >= end {
					return
				}
			}
		}
	}
}

// move takes the stretch of points from at on out of the tour, and puts it in at the best place if that is cheaper.
//
//	... before [first ... last] after ...  p q ...   ->   ... before after ... p [first ... last] q ...
func (d *descent) move(s square, at, length int) bool {
	n := s.n
	d.work += int64(4 * n)
	get := func(k int) int { return d.tour[(at+k)%n] }
	before, first, last, after := get(n-1), get(0), get(length-1), get(length)
	along, back := 0.0, 0.0
	for k := 0; k+1 < length; k++ {
		along += s.at(get(k), get(k+1))
		back += s.at(get(k+1), get(k))
	}
	now := s.at(before, first) + s.at(last, after) - s.at(before, after)
	best, place, turned := -1e-12-1e-9*math.Abs(now), 0, false
	for k := length; k+1 < n; k++ {
		p, q := get(k), get(k+1)
		if c := s.at(p, first) + s.at(last, q) - s.at(p, q) - now; c < best {
			best, place, turned = c, k, false
		}
		if c := s.at(p, last) + s.at(first, q) - s.at(p, q) + back - along - now; c < best {
			best, place, turned = c, k, true
		}
	}
	if turned2 := s.at(before, last) + s.at(first, after) + back - along - s.at(before, first) - s.at(last, after); turned2 < best {
		best, place, turned = turned2, n-1, true
	}
	if place == 0 {
		return false
	}
	d.rebuild(at, length, place, turned)
	return true
}

func (d *descent) rebuild(at, length, place int, turned bool) {
	n := len(d.tour)
	d.next = d.next[:0]
	for k := length; k <= place; k++ {
		d.next = append(d.next, d.tour[(at+k)%n])
	}
	for k := range length {
		if turned {
			k = length - 1 - k
		}
		d.next = append(d.next, d.tour[(at+k)%n])
	}
	for k := place + 1; k < n; k++ {
		d.next = append(d.next, d.tour[(at+k)%n])
	}
	d.tour, d.next = d.next, d.tour
}
