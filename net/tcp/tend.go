package tcp

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// How long a rail may stand still, while another one to the same rank does not.
const (
	suspectAfter = 300 * time.Millisecond
	deadAfter    = 3 * time.Second
)

// How many bytes a socket among several may hold that are not on the wire: what it holds no other rail can take, and what it has not got
// it cannot send before this process has its turn. So it is what the rail sends in waterTime.
const (
	lowWater  = 128 << 10 // while nothing is known of its rate, and at least
	highWater = 4 << 20
	waterTime = 24 * time.Millisecond
	rateTime  = 10 * time.Millisecond // of sending, for a rate that means something
)

// pulse is what the tender saw of a rail.
type pulse struct {
	sent  uint64    // bytes that the socket had taken
	acked uint64    // bytes that the peer's host had taken
	busy  uint64    // microseconds in which it had something to send
	water int       // what the socket may hold
	since time.Time // when that changed last, or nothing was under way
	until time.Time // when one that parts is given up
	moves bool      // no retransmission since then was in vain
	last  time.Time // when the peer's host was found to have taken more
	waits bool      // something was under way
	load  load
}

// Tend looks after the rails. It is to be called about every 100 ms, and does nothing fast where nothing
// is wrong. A rail that stands still while another one moves is suspected: its slices go by the others at once. If it moves again it
// is used again; if not, it is given up after a while, and the other end is told. Rails of one path share its fate, unless some move.
//
//	live ── 300 ms without progress, with retransmissions, while another moves ──> suspect ── 3 s ──> dead
//	  ^──────────────────────────── progress ─────────────────────────────────────────┘
//
// After an outage of all rails those that come back later than the first have the 3 s from then on.
//
// A peer whose process is stopped acknowledges nothing new either, but on all rails alike, and without retransmissions.
func (n *Net) Tend() {
	n.tending.Lock()
	defer n.tending.Unlock()
	n.mu.Lock()
	links, keepalive := slices.Clone(n.links), n.opts.Keepalive
	n.mu.Unlock()
	now, asked := time.Now(), 0
	for _, l := range links {
		if l.live()|l.with(railSuspect) != 0 && l.dead.Load() == nil {
			if keepalive > 0 && asked < mostAsked && l.inquire(now, max(keepalive, leastQuiet)) {
				asked++
			}
			l.tend(now)
		}
		if l.Parts() {
			l.awaitEnd(now)
		}
	}
	if n.dying.Load() {
		n.serve(nil)
	}
}

// awaitEnd gives up rails whose other end does not let go of them, so that new ones can be laid.
func (l *Link) awaitEnd(now time.Time) {
	for k := range l.rails {
		c := l.rails[k].Load()
		switch {
		case c == nil || c.state.Load() != railParting:
		case c.pulse.until.IsZero():
			c.pulse.until = now.Add(deadAfter)
		case now.After(c.pulse.until):
			c.fail(&GoneError{Cause: errStill})
		}
	}
}

// feel takes c's pulse. A rail moves unless the kernel tries in vain to send what it has, or asks in vain. One that waits for the peer to
// read is not stuck, and a socket without such knowledge is trusted.
func (n *Net) feel(c *conn, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return
	}
	q, sent := &c.pulse, c.sent.Load()
	if sent == q.sent && !q.waits && c.asking.asked.IsZero() { // nothing was to be done since the last look
		q.since, q.moves = now, true
		q.load.rest(now)
		return
	}
	info, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	q.sent, q.waits = sent, err == nil && waiting(info)
	silent := err == nil && c.silent(info, now)
	if err != nil || info.Bytes_acked != q.acked || q.since.IsZero() || !q.waits && !silent {
		q.since, q.moves = now, true
	} else {
		q.moves = !silent && info.Retransmits == 0 && info.Backoff == 0 && !held(info)
	}
	if err == nil {
		c.measure(info)
		q.load.look(info, now)
		if info.Bytes_acked != q.acked {
			q.last = now
		}
		q.acked = info.Bytes_acked
	}
}

// measure sets how much the socket may hold by what it sent while it had something to send.
func (c *conn) measure(info *unix.TCPInfo) {
	q := &c.pulse
	busy := time.Duration(info.Busy_time-q.busy) * time.Microsecond
	if busy < rateTime {
		return
	}
	q.busy = info.Busy_time
	rate := float64(info.Bytes_acked-q.acked) / busy.Seconds()
	c.rate.Store(uint64(rate))
	if live := c.link.live(); live&(live-1) == 0 {
		if q.water > 0 { // a lone rail may hold as much as the kernel likes
			q.water = 0
			_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, 0)
		}
		return
	}
	water := max(lowWater, min(int(rate*waterTime.Seconds()), highWater))
	if water > q.water*5/4 || water < q.water*3/4 {
		q.water = water
		_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, water)
	}
}

// waiting reports whether bytes wait for the path: they are on the wire, or could be.
func waiting(info *unix.TCPInfo) bool { return info.Unacked > 0 || held(info) }

// held reports whether the kernel keeps all that it has though the peer has room for a packet: without a route, or where the device
// itself refuses packets as large as these. It counts no retransmissions then.
func held(info *unix.TCPInfo) bool {
	return info.Unacked == 0 && info.Notsent_bytes > 0 && info.Snd_wnd >= info.Snd_mss
}

// share prepares the socket for its place among others: it holds no more than it can send soon, so that each rail takes what it can
// carry.
func (c *conn) share() {
	for k := range c.link.rails {
		if o := c.link.rails[k].Load(); o != nil && !o.closed {
			_ = unix.SetsockoptInt(o.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, lowWater)
		}
	}
	_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, lowWater)
}

// bury closes the sockets of dead rails. The caller holds the rx baton; a link whose tx baton another holds has its turn at the next
// look.
func (n *Net) bury() {
	n.dying.Store(false)
	n.mu.Lock()
	links := slices.Clone(n.links)
	n.mu.Unlock()
	for _, l := range links {
		if l.mourns() {
			l.bury()
		}
	}
}

// mourns reports whether a dead rail's socket is open.
func (l *Link) mourns() bool {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	open := func(c *conn) bool { return c != nil && !c.closed && c.state.Load() == railDead }
	for k := range l.rails {
		if open(l.rails[k].Load()) {
			return true
		}
	}
	return slices.ContainsFunc(l.grave, open)
}

func (l *Link) bury() {
	if !l.tx.take() {
		l.net.dying.Store(true)
		return
	}
	l.net.mu.Lock()
	for k := range l.rails {
		if c := l.rails[k].Load(); c != nil && c.state.Load() == railDead {
			c.free()
		}
	}
	for _, c := range l.grave {
		if c.state.Load() == railDead {
			c.free()
		}
	}
	l.grave = slices.DeleteFunc(l.grave, func(c *conn) bool { return c.closed })
	l.net.mu.Unlock()
	for !l.tx.pass() {
		l.sendSome()
	}
}
