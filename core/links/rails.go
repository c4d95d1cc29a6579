package links

import (
	"net/netip"
	"slices"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/net/tcp"
)

// Further rails to a process on another host, where both hosts have several interfaces, are laid beside the work: init waits for one
// connection alone, and interfaces that lead nowhere cost nobody anything. Those that fail are laid anew, as often as it takes; and where
// nothing moves at all others are tried (relief.go).
//
// The process that dials goes from one of its interfaces to one of the other's addresses, and numbers the rail; the other one takes
// what arrives.

// wantedRail is a rail that this process dials.
type wantedRail struct {
	rail    int
	by      boot.Interface
	to      netip.AddrPort
	attempt *boot.Attempt // under way; nil: none
	began   time.Time     // of the attempt, or of the pause behind the last one
	pause   time.Duration
	worked  bool      // once: then it may come back any time
	laid    time.Time // zero: it is not there
	brief   int       // how often in turn it failed soon after it was laid
}

const (
	attemptTime   = 2 * time.Second
	railPause     = time.Second            // before a rail is tried again
	mostRailPause = time.Minute            // before one that never worked is
	stuckPause    = 200 * time.Millisecond // where nothing moves on any rail
	mostBrief     = 3                      // doublings of the pause of one that works briefly: it is used again within 10 s
	briefTime     = 10 * time.Second
)

// plan lists the rails to be dialled, once the first connection is there: that one's way, should it fail while others go on, then each
// interface of ours with an address on its own network, or, where it has none there, with one that no other interface of ours reaches
// directly. Each interface of either side is in one of them. Where the first connection is made anew by another way, so is the plan.
func (f *Far) plan(now time.Time) {
	if !f.dials || !f.remote || f.planned == f.first {
		return
	}
	f.drop()
	f.planned = f.first
	f.want(0, f.ways()[0])
	it := f.wants[0]
	it.worked, it.laid, it.pause = true, now, railPause
	nics := f.pool.svc.Interfaces()
	for k, p := range pairRails(nics, f.rails, f.first, f.terms.Cross) {
		if path := k + 1; path < tcp.MaxPaths {
			f.want(path, way{nics[p[0]], f.rails[p[1]]})
		}
	}
}

// want plans the sockets of a path.
func (f *Far) want(path int, w way) {
	if f.terms.Sockets == 0 {
		f.widths[path] = &width{by: w}
	}
	for k := range max(f.terms.Sockets, 1) {
		f.wants = append(f.wants, &wantedRail{rail: tcp.Rail(path, k), by: w.by, to: w.to})
	}
}

// drop gives up what was planned.
func (f *Far) drop() {
	for _, w := range f.wants {
		w.hangUp()
	}
	f.wants, f.widths = nil, [tcp.MaxPaths]*width{}
}

// pairRails pairs interfaces here with addresses there, by their places in the lists. had is the connection that there is already;
// without cross those that a router joins must stand at one place.
func pairRails(nics []boot.Interface, rails []netip.AddrPort, had [2]netip.Addr, cross bool) (pairs [][2]int) {
	here, there := make([]bool, len(nics)), make([]bool, len(rails))
	for i := range nics {
		here[i] = nics[i].Addr == had[0]
	}
	for j := range rails {
		there[j] = rails[j].Addr() == had[1]
	}
	for _, routed := range []bool{false, true} {
		for i := range nics {
			for j := range rails {
				a := rails[j].Addr()
				fits := nics[i].Net.Contains(a) || routed && !direct(nics, a) && a.Is4() == nics[i].Addr.Is4() && (cross || i == j)
				if !here[i] && !there[j] && fits && a != nics[i].Addr {
					here[i], there[j] = true, true
					pairs = append(pairs, [2]int{i, j})
				}
			}
		}
	}
	return pairs
}

// direct reports whether any interface has an address on its own network.
func direct(nics []boot.Interface, a netip.Addr) bool {
	return slices.ContainsFunc(nics, func(n boot.Interface) bool { return n.Net.Contains(a) })
}

// lay goes on with the rails that are not there, and says when to come again.
func (f *Far) lay(now time.Time) (pace time.Duration) {
	pace = idleTime
	if f.link.Parts() { // it is let go of
		return tendTime
	}
	for _, w := range f.wants {
		pace = min(pace, tendTime)
		if f.dial(w, now) {
			pace = attendTime
		}
	}
	if f.remote && f.used() {
		pace = min(pace, tendTime)
		f.widen(now)
		if f.relieve(now) {
			pace = attendTime
		}
	}
	return pace
}

// dial goes on with a rail and reports whether it is being laid.
func (f *Far) dial(w *wantedRail, now time.Time) bool {
	if w.attempt == nil {
		path, socket := tcp.Place(w.rail)
		if f.link.Live(w.rail) || !f.used() || socket > 0 && !f.link.Live(path) { // whether it leads there one tries alone
			return false
		}
		if w.lost(now); now.Sub(w.began) < w.rest(f.link.Stuck()) {
			return false
		}
		w.began = now
		w.attempt = boot.Try(w.by, w.to, doorOf(f.name, f.secret), f.secret[:], 0, uint8(purposeRail+w.rail))
	}
	conn, err := w.attempt.Turn()
	switch {
	case conn.FD >= 0:
		w.worked, w.pause, w.laid = true, railPause, now
		f.add(w.rail, conn)
		_, rank := f.label()
		f.say("%s to rank %d goes by %s to %v", railName(w.rail), rank, w.by.Name, w.to.Addr())
	case err != nil || now.Sub(w.began) > attemptTime:
		if w.pause == 0 {
			_, rank := f.label()
			f.say("no rail to rank %d by %s to %v: %v", rank, w.by.Name, w.to.Addr(), err)
		}
		w.pause = max(railPause, min(2*w.pause, mostRailPause))
		if w.worked {
			w.pause = railPause
		}
		w.began = now
	default:
		return true
	}
	w.hangUp()
	return false
}

// lost takes note that the rail failed. One that fails again and again as soon as it is used gets longer pauses, and small packets every
// other time: it may be large ones that are lost on its way.
func (w *wantedRail) lost(now time.Time) {
	if w.laid.IsZero() {
		return
	}
	if now.Sub(w.laid) > briefTime {
		w.brief = 0
	} else {
		w.brief++
	}
	w.laid, w.began, w.pause = time.Time{}, now, railPause<<min(w.brief, mostBrief)/2
	w.by.Segment = w.brief % 2 * smallSegment
}

// rest is the pause where nothing has moved on any rail for so long: one that comes and goes may be the only one that is there now.
func (w *wantedRail) rest(stuck time.Duration) time.Duration {
	if stuck >= stuckPause {
		return min(w.pause, stuckPause)
	}
	return w.pause
}

func (w *wantedRail) hangUp() {
	if w.attempt != nil {
		w.attempt.Close()
		w.attempt = nil
	}
}
