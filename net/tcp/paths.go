package tcp

import (
	"slices"
	"time"
)

// way is what the tender saw of a path. Its rails share its fate: where one stands still and none has moved since, those that have
// nothing to send would stand still as well if they were given anything.
type way struct {
	here  bool      // it has rails
	since time.Time // when the first of those that stand still began to; zero: none does
	last  time.Time // when one was last seen to move
}

// moves reports whether none stands still, or another one of them moves.
func (w *way) moves(now time.Time) bool {
	return w.since.IsZero() || w.last.After(w.since) && now.Sub(w.last) < suspectAfter
}

// still is since when c stands still, by itself or as all of its path do; zero: it does not.
func (w *way) still(c *conn, now time.Time) time.Time {
	switch {
	case !c.pulse.moves:
		return c.pulse.since
	case w.moves(now):
		return time.Time{}
	case w.last.After(w.since):
		return w.last
	}
	return w.since
}

func (l *Link) tend(now time.Time) {
	l.each(func(c *conn) { l.net.feel(c, now) })
	l.strain(now)
	l.weigh(now)
}

// each calls do for the rails that are live or suspects.
func (l *Link) each(do func(c *conn)) {
	for k := range l.rails {
		if c := l.rails[k].Load(); c != nil && c.state.Load() <= railSuspect {
			do(c)
		}
	}
}

// weigh uses rails again, gives them up and suspects them, by the pulses that were felt.
func (l *Link) weigh(now time.Time) {
	var ways [MaxPaths]way
	var stuck time.Time // the last of those that something waits for
	l.each(func(c *conn) {
		q := &c.pulse
		ways[c.rail%MaxPaths].add(q)
		if !q.moves && q.waits && q.since.After(stuck) {
			stuck = q.since
		}
	})
	moving := false
	for k := range ways {
		moving = moving || ways[k].here && ways[k].moves(now)
	}
	l.ponder(now, moving, stuck)
	still := func(c *conn) time.Time { return ways[c.rail%MaxPaths].still(c, now) }
	l.trust(still)
	if !moving {
		l.moving = time.Time{}
		return
	}
	if l.moving.IsZero() {
		l.moving = now
	}
	l.giveUp(now, &ways, still)
	l.suspect(now, still)
}

func (w *way) add(q *pulse) {
	w.here = true
	if !q.moves && (w.since.IsZero() || q.since.Before(w.since)) {
		w.since = q.since
	}
	if q.last.After(w.last) {
		w.last = q.last
	}
}

// trust uses suspects that move again.
func (l *Link) trust(still func(*conn) time.Time) {
	again := false
	l.each(func(c *conn) {
		if still(c).IsZero() && c.state.CompareAndSwap(railSuspect, railLive) {
			again = true
		}
	})
	if again {
		l.flush()
	}
}

// giveUp ends rails that have stood still for deadAfter while others moved. One that has carried nothing since it was laid, when all stood
// still, shows nothing.
func (l *Link) giveUp(now time.Time, ways *[MaxPaths]way, still func(*conn) time.Time) {
	l.each(func(c *conn) {
		since := still(c)
		if since.IsZero() || now.Sub(since) < deadAfter || now.Sub(l.moving) < deadAfter || !overtaken(ways, since) {
			return
		}
		l.upset.Store(&now)
		l.drops.Or(1 << c.rail)
		c.fail(&GoneError{Cause: errStill})
	})
}

// overtaken reports whether anything has moved after a time.
func overtaken(ways *[MaxPaths]way, since time.Time) bool {
	return slices.ContainsFunc(ways[:], func(w way) bool { return w.last.After(since) })
}

// suspect has others take what all suspects had at once: none is to take what another one of them had.
func (l *Link) suspect(now time.Time, still func(*conn) time.Time) {
	set := uint64(0)
	l.each(func(c *conn) {
		since := still(c)
		if !since.IsZero() && now.Sub(since) >= suspectAfter && c.state.CompareAndSwap(railLive, railSuspect) {
			set |= 1 << c.rail
		}
	})
	if set != 0 {
		l.orphans.Or(set)
		l.flush()
	}
}
