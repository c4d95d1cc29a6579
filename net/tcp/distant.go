package tcp

import "math/bits"

// Distant rails are those whose card here is nearer to other processes of this host. They are spared: they count as so many times slower,
// unless they are so many times faster than the best of the others.
const (
	distantTimes = 4
	alikeTimes   = 2
	leastPace    = 1e6 // bytes per second of a rail of which nothing is known
)

// Distant says whether a rail is.
func (l *Link) Distant(rail int, so bool) {
	if so {
		l.distant.Or(1 << rail)
	} else {
		l.distant.And(^(uint64(1) << rail))
	}
}

// paces are what counts as the rate of a rail that is not known, and the rate from which on distant rails are not spared. Where some are
// distant those that are not get their chance before anything is known of them.
func (l *Link) paces() (unknown, alike float64) {
	distant := l.distant.Load()
	if distant == 0 {
		return leastPace, 0
	}
	live := l.live()
	unknown = l.best(live, leastPace)
	if near := live &^ distant; near != 0 {
		alike = alikeTimes * l.best(near, unknown)
	}
	return unknown, alike
}

// best is the greatest pace of a set of rails.
func (l *Link) best(set uint64, unknown float64) (pace float64) {
	for ; set != 0; set &= set - 1 {
		if c := l.rails[bits.TrailingZeros64(set)].Load(); c != nil {
			pace = max(pace, c.pace(unknown))
		}
	}
	return pace
}

func (c *conn) pace(unknown float64) float64 {
	if rate := c.rate.Load(); rate > 0 {
		return max(float64(rate), leastPace)
	}
	return unknown
}
