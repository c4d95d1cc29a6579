package tcp

import "time"

// Stuck is for how long nothing has moved on any rail, though something is to be sent; 0 while anything moves, and where nothing is to
// be sent. A process that is stopped or slow to read does not count.
func (l *Link) Stuck() time.Duration { return time.Duration(l.stuck.Load()) }

// Spare is the number of a rail that may be laid beside those that stand still, -1: none is free. The ends take numbers of their own,
// from above: those of paths between interfaces begin below. It is the first socket of a path.
func (l *Link) Spare(lower bool) int {
	k := MaxPaths - 1
	if lower {
		k--
	}
	for ; k >= 0; k -= 2 {
		if !l.Live(k) {
			return k
		}
	}
	return -1
}

// ponder notes for how long all paths have stood still, the last rail since a time; zero: none that something waits for does.
func (l *Link) ponder(now time.Time, moving bool, since time.Time) {
	if moving || since.IsZero() {
		l.stuck.Store(0)
	} else {
		l.stuck.Store(int64(now.Sub(since)))
	}
}
