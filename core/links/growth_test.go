package links

import (
	"slices"
	"testing"
	"time"

	"hccl.dev/hccl/net/tcp"
)

// course is a network as growth sees it: what a number of sockets carries, of which share of the time, and what the card carries for all.
type course struct {
	path  func(sockets int) float64 // bytes per second
	card  func(sockets int) float64 // nil: not known
	share float64                   // of the time under strain
	lays  bool                      // a socket can be laid
}

// grow lets an hour pass over a path, and returns its verdicts and the number of its sockets.
func (w course) grow() (told []verdict, sockets int) {
	var g growth
	var s sight
	const tick = 100 * time.Millisecond
	now, rest := time.Unix(1e9, 0), 0.
	for range time.Hour / tick {
		now = now.Add(tick)
		n := g.sockets()
		if g.trial && !w.lays {
			n--
		}
		if rest += w.share; rest >= 1 {
			rest--
			s.strain.Time += tick
			s.strain.Bytes += uint64(w.path(n) * tick.Seconds())
			if w.card != nil {
				s.card += uint64(w.card(n) * tick.Seconds())
			}
		}
		if v, _, _ := g.step(now, s, g.trial && w.lays); v != stay {
			told = append(told, v)
		}
	}
	return told, g.sockets()
}

func each(rate, most float64) func(int) float64 {
	return func(n int) float64 { return min(float64(n)*rate, most) }
}

func always(rate float64) func(int) float64 { return func(int) float64 { return rate } }

func above(all, rate float64) func(int) float64 {
	return func(n int) float64 { return all + rate*float64(n) }
}

// beside is the part of a card that is full of one more connection, of another process.
func beside(all float64) func(int) float64 {
	return func(n int) float64 { return all * float64(n) / float64(n+1) }
}

// Sockets are added for as long as they make a path faster, and no more; what is in vain is tried ever more rarely.
func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		course
		sockets int
		last    verdict
		least   int // verdicts
		most    int
	}{
		"each connection is bounded":      {course{each(1e8, 1e12), nil, 1, true}, tcp.MaxSockets, kept, 14, 14},
		"in bursts":                       {course{each(1e8, 1e12), nil, 0.3, true}, tcp.MaxSockets, kept, 14, 14},
		"and the card too":                {course{each(1e8, 3e8), each(1e8, 3e8), 1, true}, 3, slower, 20, 40},
		"the card alone":                  {course{always(1e8), always(1e8), 1, true}, 1, slower, 20, 40},
		"a little faster":                 {course{above(1e8, 1e7), nil, 1, true}, 1, slower, 20, 40},
		"what one gains others lose":      {course{beside(2e8), always(2e8), 1, true}, 1, slower, 20, 40},
		"others lose nothing":             {course{each(1e8, 1e12), above(5e8, 1e8), 1, true}, tcp.MaxSockets, kept, 14, 14},
		"rarely held back":                {course{each(1e8, 1e12), nil, 0.1, true}, 1, stay, 0, 0},
		"no second connection is allowed": {course{each(1e8, 1e12), nil, 1, false}, 1, absent, 20, 40},
	} {
		told, sockets := c.grow()
		last := stay
		if ends := slices.DeleteFunc(slices.Clone(told), func(v verdict) bool { return v == more }); len(ends) > 0 {
			last = ends[len(ends)-1]
		}
		if sockets != c.sockets && sockets != c.sockets+1 || last != c.last || len(told) < c.least || len(told) > c.most {
			t.Errorf("%s: %d sockets after %d verdicts, the last of them %d: %v", name, sockets, len(told), last, told)
		}
	}
}

// A trial ends where there is nothing to send any more, and where its socket fails.
func TestTrialsThatTellNothing(t *testing.T) {
	for name, c := range map[string]struct {
		fails bool
		want  verdict
	}{"nothing to send": {false, unsure}, "it fails": {true, absent}} {
		var g growth
		var s sight
		now, laid, got := time.Unix(1e9, 0), false, stay
		for range 200 {
			now = now.Add(100 * time.Millisecond)
			if !g.trial && got == stay {
				s.strain.Time += 100 * time.Millisecond
				s.strain.Bytes += 1e7
			}
			v, _, _ := g.step(now, s, laid)
			laid = g.trial && !(c.fails && laid)
			if v != stay {
				got = v
			}
		}
		if got != c.want || g.sockets() != 1 {
			t.Errorf("%s: %d, with %d sockets", name, got, g.sockets())
		}
	}
}

// What one process gains on a card that is full others lose, and the first trial shows it.
func TestFullCard(t *testing.T) {
	if told, _ := (course{beside(2e8), always(2e8), 1, true}).grow(); told[1] != taken {
		t.Errorf("%v", told)
	}
}

// A slow moment before a trial does not make what follows look fast.
func TestSlowMoments(t *testing.T) {
	var g growth
	var s sight
	now := time.Unix(1e9, 0)
	for range 36000 {
		now = now.Add(100 * time.Millisecond)
		s.strain.Time += 100 * time.Millisecond
		s.strain.Bytes += 10_000_000
		if !g.trial && !g.ends.IsZero() { // all but the first watch are slow
			s.strain.Bytes -= 2_000_000
		}
		if v, _, _ := g.step(now, s, g.trial); v == kept {
			t.Fatalf("a socket was kept that made nothing faster, %v after the start", now.Sub(time.Unix(1e9, 0)))
		}
		if g.length == 4*firstPause {
			return
		}
	}
	t.Error("there were no three trials")
}

// A path that has all sockets asks for none.
func TestAllSockets(t *testing.T) {
	f := &Far{pool: &Pool{}, link: tcp.NewNet().NewLink(func() {})}
	defer f.link.Close()
	f.widths[0] = &width{growth: growth{extra: tcp.MaxSockets - 1}}
	f.widen(time.Now())
	if f.wants != nil {
		t.Errorf("%d more are wanted", len(f.wants))
	}
}

// What a card sends counts beside the strain of the same time only.
func TestSights(t *testing.T) {
	w := &width{}
	var sent uint64
	by := func(string) uint64 { return sent }
	now := time.Unix(1e9, 0)
	look := func(time_ time.Duration, bytes, card uint64) sight {
		now = now.Add(100 * time.Millisecond)
		sent += card
		s := w.strain
		s.Time += time_
		s.Bytes += bytes
		return w.look(now, s, by)
	}
	const tick = 100 * time.Millisecond
	look(0, 0, 1000)
	look(tick, 10, 20) // the card's number was not known before
	look(tick, 10, 30)
	look(0, 0, 400)
	if s, want := look(tick, 10, 30), (sight{tcp.Strain{Time: 2 * tick, Bytes: 20}, 60}); s != want {
		t.Errorf("%v, wanted %v", s, want)
	}
	sent = 0
	by = func(string) uint64 { return 0 } // not known any more
	if s, want := look(tick, 10, 0), (sight{tcp.Strain{Time: 3 * tick, Bytes: 30}, 60}); s != want {
		t.Errorf("%v without a number, wanted %v", s, want)
	}
}

// The interface that every network has sends bytes; one that is not there sends none.
func TestCards(t *testing.T) {
	c := cards{text: []byte("Inter-|  Receive | Transmit\n face |bytes packets\n" +
		"    lo: 1 2 3 4 5 6 7 8 99 10\n  eth0:11 2 3 4 5 6 7 8 77 10\n")}
	if lo, eth, none := c.sent("lo"), c.sent("eth0"), c.sent("eth"); lo != 99 || eth != 77 || none != 0 {
		t.Errorf("%d, %d and %d bytes", lo, eth, none)
	}
}
