package links

import (
	"slices"
	"strconv"
	"time"

	"hccl.dev/hccl/net/tcp"
)

// width is a path whose number of sockets follows what it has to carry. The process that dials it decides, by what it sends itself.
type width struct {
	growth
	by       way
	at       sight      // adds up what was seen together
	strain   tcp.Strain // at the last look
	strained time.Time  // when it last grew
	sent     uint64     // bytes by the card at the last look; 0: not known
}

// look is what is seen of the path now. The card is looked at only while it may matter.
func (w *width) look(now time.Time, s tcp.Strain, sentBy func(card string) uint64) sight {
	more := s.Less(w.strain)
	if more.Time > 0 {
		w.strained = now
	}
	sent := uint64(0)
	if w.watches(now) && now.Sub(w.strained) < time.Second {
		sent = sentBy(w.by.by.Name)
	}
	if more.Time > 0 && (sent == 0 || w.sent > 0) { // else there is no number to compare with yet
		w.at.strain.Time += more.Time
		w.at.strain.Bytes += more.Bytes
		w.at.card += sent - min(sent, w.sent)
	}
	w.strain, w.sent = s, sent
	return w.at
}

// widen goes on with the paths: one trial at a time, or the sockets of one would be judged by what those of another take.
func (f *Far) widen(now time.Time) {
	trial := slices.IndexFunc(f.widths[:], func(w *width) bool { return w != nil && w.trial })
	for path, w := range f.widths {
		if w == nil {
			continue
		}
		s := w.look(now, f.link.Strain(path), f.pool.cards.sent)
		if trial >= 0 && trial != path {
			w.watch(now, s)
			continue
		}
		rail := tcp.Rail(path, 1+w.extra)
		v, before, after := w.step(now, s, w.trial && f.link.Live(rail))
		if v == more {
			trial = path
		}
		if v != stay {
			f.resize(w, rail, v, before, after)
		}
	}
}

// resize does what was decided of a path, and says why.
func (f *Far) resize(w *width, rail int, v verdict, before, after float64) {
	_, socket := tcp.Place(rail)
	_, rank := f.label()
	name, which := w.by.by.Name, ordinals[socket]
	switch v {
	case more:
		f.wants = append(f.wants, &wantedRail{rail: rail, by: w.by.by, to: w.by.to})
		f.say("to rank %d by %s: %s %s socket is tried, as %s and always more is to be sent", rank, name, article(socket), which,
			carry(socket, before))
		return
	case kept:
		f.say("to rank %d by %s: the %s socket is kept: %.0f Mbit/s", rank, name, which, mbit(after))
		return
	}
	f.wants = slices.DeleteFunc(f.wants, func(o *wantedRail) bool {
		if o.rail == rail {
			o.hangUp()
		}
		return o.rail == rail
	})
	f.link.LetGo(rail)
	switch v {
	case slower:
		f.say("to rank %d by %s: the %s socket is given up: no faster (%.0f Mbit/s)", rank, name, which, mbit(after))
	case taken:
		f.say("to rank %d by %s: the %s socket is given up: what it gained (%.0f Mbit/s) other connections by %[2]s have lost", rank, name,
			which, mbit(after-before))
	case absent:
		f.say("to rank %d by %s: the %s socket is given up: it is not there", rank, name, which)
	case unsure:
		f.say("to rank %d by %s: the %s socket is given up: too little was to be sent for a comparison", rank, name, which)
	}
}

// narrow forgets what was found out, as all sockets are let go of.
func (f *Far) narrow() {
	for path, w := range f.widths {
		if w == nil || w.sockets() == 1 {
			continue
		}
		f.wants = slices.DeleteFunc(f.wants, func(o *wantedRail) bool {
			at, socket := tcp.Place(o.rail)
			if at != path || socket == 0 {
				return false
			}
			o.hangUp()
			return true
		})
		w.growth = growth{}
	}
}

var ordinals = [tcp.MaxSockets]string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"}

func article(socket int) string {
	if socket == 7 {
		return "an"
	}
	return "a"
}

func mbit(rate float64) float64 { return rate * 8 / 1e6 }

func carry(sockets int, rate float64) string {
	text := strconv.FormatFloat(mbit(rate), 'f', 0, 64) + " Mbit/s"
	if sockets == 1 {
		return "one carries " + text
	}
	return strconv.Itoa(sockets) + " carry " + text
}
