package links

import (
	"time"

	"hccl.dev/hccl/net/tcp"
)

// How many sockets a path has where the user has not said. One is best on a wire of its own; but there are networks that bound a single
// connection, and only a trial tells:
//
//	one ── a second in which the network alone held it back ──> one more is tried ── clearly faster ──> kept, and so on
//	  ^                                                               │
//	  └────────────── a pause, twice as long each time ───────────────┴── no faster, or others pay for it
const (
	watchTime  = time.Second            // of strain, before one more is tried
	watchMost  = 5 * time.Second        // within which it must come together
	trialTime  = time.Second            // of strain
	trialMost  = 10 * time.Second       // until a trial that had too little of it ends
	layTime    = 3 * time.Second        // for the socket of a trial
	settleTime = 500 * time.Millisecond // for it to gather speed
	clearGain  = 0.15                   // of the rate before
	dueGain    = 0.5                    // of one socket's part, where that is less
	memory     = 0.9                    // of the rates in the last trial: a slow moment is no reason for more
	firstPause = 10 * time.Second
	mostPause  = 5 * time.Minute
)

// growth is what decides. It knows no clock, no socket and no card: step is told.
type growth struct {
	extra  int       // sockets beside the first one that were kept
	trial  bool      // one more is there, or is being laid
	laid   bool      // it was there
	began  time.Time // of the watch or the trial, or when the new socket will have settled
	seen   sight     // then
	had    gains     // before the trial
	ends   time.Time // of the pause
	length time.Duration
}

// sight is a path at a time.
type sight struct {
	strain tcp.Strain
	card   uint64 // bytes that its card has sent for all processes, while the path was under strain
}

// gains are bytes per second under strain. card is 0 where nothing is known.
type gains struct{ path, card float64 }

// since are those from an earlier sight to s.
func (s sight) since(o sight) gains {
	d := s.strain.Less(o.strain)
	if d.Time <= 0 {
		return gains{}
	}
	return gains{d.Rate(), float64(s.card-o.card) / d.Time.Seconds()}
}

// verdict is what a step has come to.
type verdict uint8

const (
	stay   verdict = iota
	more           // begin a trial
	kept           // the trial's socket stays
	slower         // it goes: no faster
	taken          // it goes: what it carries others of this host have lost
	absent         // it goes: it could not be laid, or has failed
	unsure         // it goes: there was too little to send
)

// sockets are those that the path is to have.
func (g *growth) sockets() int {
	if g.trial {
		return 2 + g.extra
	}
	return 1 + g.extra
}

// watches reports whether a step at a time would look at what it is told.
func (g *growth) watches(now time.Time) bool {
	return g.trial || g.sockets() < tcp.MaxSockets && !now.Before(g.ends)
}

// step goes on. laid: the socket of a trial is there. Rates are in bytes per second.
func (g *growth) step(now time.Time, s sight, laid bool) (v verdict, before, after float64) {
	switch {
	case g.trial:
		return g.judge(now, s, laid)
	case !g.watches(now):
		g.watch(now, s)
	case s.strain.Time-g.seen.strain.Time >= watchTime:
		seen := s.since(g.seen)
		g.had = gains{max(seen.path, memory*g.had.path), max(seen.card, memory*g.had.card)}
		g.trial, g.laid, g.began = true, false, now
		return more, seen.path, 0
	case now.Sub(g.began) > watchMost:
		g.watch(now, s)
	}
	return stay, 0, 0
}

// watch begins anew.
func (g *growth) watch(now time.Time, s sight) { g.began, g.seen = now, s }

// judge goes on with a trial.
func (g *growth) judge(now time.Time, s sight, laid bool) (v verdict, before, after float64) {
	switch {
	case g.laid && !laid, !laid && now.Sub(g.began) > layTime:
		return g.end(now, s, absent)
	case !laid:
		return stay, 0, 0
	case !g.laid:
		g.laid = true
		g.watch(now.Add(settleTime), s)
		return stay, 0, 0
	case now.Before(g.began):
		g.seen = s
		return stay, 0, 0
	case s.strain.Time-g.seen.strain.Time >= trialTime:
		return g.end(now, s, g.weigh(s.since(g.seen)))
	case now.Sub(g.began) > trialMost:
		return g.end(now, s, unsure)
	}
	return stay, 0, 0
}

// weigh compares the trial with the time before. A card that is full is shared anew, and who has more connections gets more of it.
func (g *growth) weigh(now gains) verdict {
	gain, due := now.path-g.had.path, min(clearGain, dueGain/float64(1+g.extra))*g.had.path
	switch {
	case gain < due:
		return slower
	case now.card > 0 && g.had.card > 0 && now.card-g.had.card < gain/2:
		return taken
	}
	return kept
}

func (g *growth) end(now time.Time, s sight, v verdict) (_ verdict, before, after float64) {
	found := s.since(g.seen)
	before, after = g.had.path, found.path
	g.trial = false
	if v == kept || v == slower || v == taken {
		g.had = found
	}
	if v == kept {
		g.extra++
		g.length = 0
	} else {
		g.length = max(firstPause, min(2*g.length, mostPause))
		g.ends = now.Add(g.length)
	}
	g.watch(now, s)
	return v, before, after
}
