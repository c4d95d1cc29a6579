package core

import (
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/proto/wire"
	"hccl.dev/hccl/shm"
)

// Over TCP each rank keeps a mirror of what the others would post in a shared segment. It is filled by control messages: a rank
// tells its header when it has waited for a while, a fault when it sees one, its state when it leaves.

func (c *Comm) tell(m *wire.Control) {
	_ = c.net.ControlAll(m.Append(nil)) // whoever is gone is reported by lost
}

func (c *Comm) tellHeader(h *shm.Header) {
	c.tell(&wire.Control{Kind: wire.TellHeader, Headers: [2]wire.Header{toWire(h)}})
}

// tellSince tells the headers of this rank's last operations that it has not told yet.
func (c *Comm) tellSince(last uint64) {
	told := c.told.Swap(last)
	if c.net == nil {
		return
	}
	for seq := max(told, last-min(last, auditDepth)) + 1; seq <= last; seq++ {
		if h, ok := c.seg.Header(c.rank, 0, seq); ok {
			c.tellHeader(&h)
		}
	}
}

func (c *Comm) tellFault(f *shm.Fault) {
	c.tell(&wire.Control{Kind: wire.TellFault, Ranks: [2]int32{int32(f.Ranks[0]), int32(f.Ranks[1])},
		Headers: [2]wire.Header{toWire(&f.Headers[0]), toWire(&f.Headers[1])}})
}

// tellState says how this rank goes, with its last header, so that others know what it has taken part in.
func (c *Comm) tellState(how shm.State) {
	if c.net == nil {
		return
	}
	m := &wire.Control{Kind: wire.TellState, State: uint32(how)}
	if last, ok := c.seg.Last(c.rank); ok {
		m.Headers[0] = toWire(&last)
		m.Posted = true
	}
	_ = c.net.Announce(m.Append(nil))
}

// hear takes in a control message of rank r. It runs on a background goroutine or in the waiting thread's own poll.
// Headers wake nobody: a waiter looks at them when it looks for what it waits for, and hundreds of ranks tell each other theirs at a time.
func (c *Comm) hear(r int, b []byte) (wake bool) {
	var m wire.Control
	if err := m.Decode(b); err != nil {
		c.log.Warn("rank %d sent a control message that cannot be read: %v", r, err)
		return false
	}
	switch m.Kind {
	case wire.TellHeader:
		h := fromWire(&m.Headers[0])
		c.seg.MirrorHeader(r, &h)
		if mine, ok := c.seg.Header(c.rank, h.Lane, h.Seq); ok && mine.Hash() != h.Hash() {
			f := pair(c.rank, mine, r, h)
			c.seg.SetFault(f)
			c.tellFault(&f)
			return true
		}
		return false
	case wire.TellFault:
		c.seg.SetFault(shm.Fault{Ranks: [2]int{int(m.Ranks[0]), int(m.Ranks[1])},
			Headers: [2]shm.Header{fromWire(&m.Headers[0]), fromWire(&m.Headers[1])}})
	case wire.TellState:
		if m.Posted {
			h := fromWire(&m.Headers[0])
			c.seg.MirrorHeader(r, &h)
		}
		c.seg.MirrorState(r, shm.State(m.State))
		c.anyGone.Store(true)
		c.seg.Raise(c.seg.Self(), shm.WhyLeft)
	}
	return true
}

// lost is told when the connection to rank r ended.
func (c *Comm) lost(r int, err error) {
	if g, ok := err.(*tcp.GoneError); ok && g.Orderly {
		return
	}
	c.log.Warn("%v", err)
	c.died(r)
}

func toWire(h *shm.Header) wire.Header {
	return wire.Header{Seq: h.Seq, Lane: h.Lane, Func: uint8(h.Func), Type: uint8(h.Type), Red: uint8(h.Red), Flags: h.Flags, Root: h.Root,
		Count: h.Count, Extra: h.Extra}
}

func fromWire(h *wire.Header) shm.Header {
	return shm.Header{Seq: h.Seq, Lane: h.Lane, Func: coll.Func(h.Func), Type: coll.DataType(h.Type), Red: coll.RedOp(h.Red), Flags: h.Flags,
		Root: h.Root, Count: h.Count, Extra: h.Extra}
}
