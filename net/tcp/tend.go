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
	moves bool      // no retransmission since then was in vain
	waits bool      // something was under way
}

// Tend looks after the rails. It is to be called about every 100 ms, and does nothing fast where nothing
// is wrong. A rail that stands still while another one moves is suspected: its slices go by the others at once. If it moves again it
// is used again; if not, it is given up after a while, and the other end is told.
//
//	live ── 300 ms without progress, with retransmissions, while another moves ──> suspect ── 3 s ──> dead
//	  ^──────────────────────────── progress ─────────────────────────────────────────┘
//
// A peer whose process is stopped acknowledges nothing new either, but on all rails alike, and without retransmissions.
func (f *Fabric) Tend() {
	f.tending.Lock()
	defer f.tending.Unlock()
	now := time.Now()
	for _, p := range f.peers {
		if p.live()|p.suspects() != 0 && p.lost() == nil {
			f.tend(p, now)
		}
	}
	if f.dying.Load() {
		f.serve(f.wake)
	}
}

func (p *peer) suspects() (mask uint32) {
	for k := range p.rails {
		if c := p.rails[k].Load(); c != nil && c.state.Load() == railSuspect {
			mask |= 1 << k
		}
	}
	return mask
}

func (f *Fabric) tend(p *peer, now time.Time) {
	still := [MaxRails]*conn{}
	moving := false
	for k := range p.rails {
		c := p.rails[k].Load()
		if c == nil || c.state.Load() == railDead {
			continue
		}
		f.feel(c, now)
		switch {
		case c.pulse.moves && c.state.CompareAndSwap(railSuspect, railLive):
			p.flush()
			moving = true
		case c.pulse.moves:
			moving = moving || c.state.Load() == railLive
		default:
			still[k] = c
		}
	}
	p.ponder(now, moving, &still)
	for k, c := range still {
		switch {
		case c == nil || !moving:
		case now.Sub(c.pulse.since) >= deadAfter:
			p.drops.Or(1 << k)
			c.fail(&GoneError{Rank: p.rank, Cause: errStill})
		case now.Sub(c.pulse.since) >= suspectAfter && c.state.CompareAndSwap(railLive, railSuspect):
			p.orphans.Or(1 << k)
			p.flush()
		}
	}
}

// feel takes c's pulse. A rail moves unless the kernel tries in vain to send what it has. One that waits for the peer to read is not
// stuck, and a socket without such knowledge is trusted.
func (f *Fabric) feel(c *conn, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.closed {
		return
	}
	q, sent := &c.pulse, c.sent.Load()
	if sent == q.sent && !q.waits { // nothing was to be done since the last look
		q.since, q.moves = now, true
		return
	}
	info, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	q.sent, q.waits = sent, err == nil && waiting(info)
	if err != nil || info.Bytes_acked != q.acked || q.since.IsZero() || !q.waits {
		q.since, q.moves = now, true
	} else {
		q.moves = info.Retransmits == 0 && info.Backoff == 0
	}
	if err == nil {
		c.measure(info)
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
	water := max(lowWater, min(int(rate*waterTime.Seconds()), highWater))
	if water > q.water*5/4 || water < q.water*3/4 {
		q.water = water
		_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, water)
	}
}

// RailState is what a rail to another rank has done so far.
type RailState struct {
	Rail   int
	Sent   uint64 // bytes that its socket took
	Direct uint64 // of those, sent from staging without a copy; on some paths the kernel makes one all the same
	Rate   uint64 // bytes per second while it had something to send, as last measured; 0: not known
	Alive  bool
}

// Rails are the rails to a rank that are there, or were: of one that was laid anew, since then.
func (f *Fabric) Rails(rank int) (list []RailState) {
	p := f.peers[rank]
	for k := range p.rails {
		if c := p.rails[k].Load(); c != nil {
			list = append(list, RailState{k, c.sent.Load(), c.direct.Load(), c.rate.Load(), c.state.Load() != railDead || p.lost() != nil})
		}
	}
	return list
}

// waiting reports whether bytes wait for the path: they are on the wire, or could be, since the peer has room. Without a route all of
// them may stay behind.
func waiting(info *unix.TCPInfo) bool {
	return info.Unacked > 0 || info.Notsent_bytes > 0 && info.Snd_wnd >= lowWater
}

// share prepares the socket for its place among others: it holds no more than it can send soon, so that each rail takes what it can
// carry.
func (c *conn) share() {
	for k := range c.peer.rails {
		if o := c.peer.rails[k].Load(); o != nil && !o.closed {
			_ = unix.SetsockoptInt(o.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, lowWater)
		}
	}
	_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, lowWater)
}

// bury closes the sockets of dead rails. The caller holds the rx baton; a peer whose tx baton or a fabric whose mu is held by another
// has its turn at the next look. Who holds mu may wait for rx.
func (f *Fabric) bury() {
	if !f.mu.TryLock() {
		return
	}
	defer f.mu.Unlock()
	f.dying.Store(false)
	for _, p := range f.peers {
		for k := range p.rails {
			if c := p.rails[k].Load(); c != nil {
				f.inter(c)
			}
		}
	}
	f.graves = slices.DeleteFunc(f.graves, func(c *conn) bool { f.inter(c); return c.closed })
}

// inter closes c's socket if it is dead.
func (f *Fabric) inter(c *conn) {
	if c.closed || c.state.Load() != railDead || f.closed.Load() {
		return
	}
	if !c.peer.tx.take() {
		f.dying.Store(true)
		return
	}
	c.free(f.set.Load())
	f.more = slices.DeleteFunc(f.more, func(m *conn) bool { return m == c })
	for !c.peer.tx.pass() {
		c.peer.sendSome()
	}
}

// goodbye notes that a peer leaves: mask are the rails that say so.
func (f *Fabric) goodbye(p *peer, mask uint32) {
	p.leavers = mask
	f.farewell(p)
}

// farewell ends a peer that has said goodbye by all rails that it had: until then some may still bring slices.
func (f *Fabric) farewell(p *peer) {
	if p.leavers == 0 {
		return
	}
	for k := range p.rails {
		c := p.rails[k].Load()
		if p.leavers>>k&1 != 0 && (c == nil || !c.left && c.state.Load() != railDead) {
			return
		}
	}
	p.lose(&GoneError{Rank: p.rank, Orderly: true})
}

// Alive reports whether a rail is there and has not failed.
func (f *Fabric) Alive(rank, rail int) bool {
	c := f.peers[rank].rails[rail].Load()
	return c != nil && c.state.Load() != railDead
}
