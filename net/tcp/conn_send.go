package tcp

import (
	"math/bits"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/net/staging"
	"hccl.dev/hccl/proto"
)

// batchFrames bounds the frames of one system call, batchBytes the payload after which no further frame joins: a control message
// waits for at most one batch, which is about one slice.
const (
	batchFrames = 16
	batchBytes  = MaxSlice / 2
	sharedBytes = 48 << 10 // the same where there are several rails, between which each batch is a choice
	manyBatches = 1 << 30
)

// sender holds the frames that are on their way into the socket, in pieces. It is guarded by the link's tx baton. A new batch is made
// when the last one is gone.
type sender struct {
	heads   [batchFrames][headerSize]byte
	iov     [2*batchFrames + 1]unix.Iovec
	owner   [2*batchFrames + 1]*staging.Buf // whose memory a piece is; nil: a header or control frames
	first   int                             // pieces before it are sent
	count   int
	frames  int
	bytes   int
	control []byte  // the control frames in this batch, and what was heard of the peers'
	whose   *Fabric // of the slice that the batch took last
	bye     bool    // the goodbye is in this batch or sent: nothing follows
	broken  bool    // the socket takes nothing more; the reader finds out why
}

// sendSome sends until nothing waits or the socket is full, as many batches as most, each of about so many bytes. blocked is set
// before each attempt, so that an event for room, which comes after the attempt that found none, has the last word.
func (c *conn) sendSome(most, batch int) (moved bool) {
	s := &c.send
	if c.zero != nil {
		c.unpin()
	}
	if c.blocked.Load() || s.broken {
		return false
	}
	for ; most > 0 && (s.first < s.count || c.seal.pending() || c.fill(batch)); most-- {
		c.blocked.Store(true)
		n, e := c.write()
		switch e {
		case 0:
			s.sent(n)
			c.sent.Store(c.sent.Load() + uint64(c.seal.passed(n)))
			c.whose.Store(s.whose)
			moved = true
		case unix.EINTR:
			most++
		case unix.EAGAIN:
			c.link.net.unsent.Store(true) // the poller says when there is room
			return moved
		default:
			// What the peer sent before it closed, perhaps a goodbye, is still to be read: the reader judges.
			s.broken = true
			c.dropBatch()
			if c.mute.Store(true); c.over.Load() { // it has judged
				c.rest()
			}
			return moved
		}
		c.blocked.Store(false)
	}
	if s.bye && s.first == s.count && !c.seal.pending() && !s.broken {
		s.broken = true // nothing may follow
		_ = unix.Shutdown(c.fd, unix.SHUT_WR)
		if c.said.Store(true); c.over.Load() {
			c.rest()
		}
	}
	return moved
}

// sent takes n bytes off the batch.
func (s *sender) sent(n int) {
	for n > 0 {
		if v := &s.iov[s.first]; uint64(n) < v.Len {
			advance(v, n)
			return
		}
		n -= int(s.iov[s.first].Len)
		s.drop()
	}
}

// drop ends the first piece.
func (s *sender) drop() {
	if b := s.owner[s.first]; b != nil {
		s.owner[s.first] = nil
		b.Put()
	}
	s.first++
}

// fill makes the next batch and reports whether there is one: control frames first, then acks, then slices.
func (c *conn) fill(batch int) bool {
	s := &c.send
	s.first, s.count, s.frames, s.bytes = 0, 0, 0, 0
	switch {
	case s.bye:
		return false
	case c.state.Load() == railParting:
		s.head(&header{typ: frameGoodbye})
		s.bye = true
	case c.state.Load() == railLive:
		c.fillControl()
		c.fillNotices()
		c.fillAcks()
		c.fillSlices(batch)
	}
	c.put.Store(c.put.Load() + s.total())
	return s.count > 0
}

// total is how many bytes the batch has.
func (s *sender) total() (n uint64) {
	for i := range s.iov[:s.count] {
		n += s.iov[i].Len
	}
	return n
}

// fillControl takes control messages, and says how many of the peers' were heard.
func (c *conn) fillControl() {
	s := &c.send
	s.control = s.control[:0]
	for _, p := range c.link.active {
		if len(s.control) >= batchBytes {
			break
		}
		if p.news.Load() && c.link.leads(c) {
			s.control = p.takeQueued(s.control, batchBytes)
		}
	}
	if c.link.speaks.Load() && c.link.leads(c) {
		s.control = c.link.takeSaid(s.control)
	}
	for _, p := range c.link.active {
		if len(s.control) >= batchBytes {
			break
		}
		if p.replies.Load() && p.replies.Swap(false) {
			h := header{typ: frameHeard, route: p.there, ack: p.heard.Load()}
			var head [headerSize]byte
			h.encode(head[:])
			s.control = append(s.control, head[:]...)
		}
	}
	if len(s.control) > 0 {
		s.add(s.control, nil)
	}
}

// fillNotices says which rails were given up, and who is not there.
func (c *conn) fillNotices() {
	l := c.link
	for w := l.drops.Load(); w != 0 && c.send.frames < batchFrames; w &= w - 1 {
		rail := bits.TrailingZeros64(w)
		l.drops.And(^(uint64(1) << rail))
		c.send.head(&header{typ: frameDrop, seq: uint64(rail)})
	}
	if l.asked.Load() {
		c.fillAnswers()
	}
}

func (c *conn) fillAcks() {
	for _, p := range c.link.active {
		if c.send.frames == batchFrames {
			return
		}
		for kind := range p.owed {
			owed := &p.owed[kind]
			for w := owed.Load(); w != 0 && c.send.frames < batchFrames; w &= w - 1 {
				channel := bits.TrailingZeros64(w)
				owed.And(^(uint64(1) << channel))
				if f := p.in.find(proto.Kind(kind), channel); f.released.Load() != f.told.Load() {
					c.send.head(&header{typ: frameAck, kind: proto.Kind(kind), channel: uint16(channel), route: p.there, ack: tell(f)})
				}
			}
		}
	}
}

// tell returns what the flow's reader has released and notes that its writer hears of it now.
func tell(f *inFlow) uint64 {
	if f == nil {
		return 0
	}
	n := f.released.Load()
	f.told.Store(n)
	return n
}

// fillSlices takes slices until the batch is large enough, in the order of the policy.
func (c *conn) fillSlices(batch int) {
	s := &c.send
	for s.frames < batchFrames && s.bytes < batch {
		p, kind, channel, ok := c.link.pick()
		if !ok {
			return
		}
		c.fillSlice(p, kind, channel)
	}
}

// fillSlice takes the next slice of a flow of p, if it has one.
func (c *conn) fillSlice(p *peer, kind proto.Kind, channel int) {
	bit := uint64(1) << channel
	f := p.out.find(kind, channel)
	p.ready[kind].And(^bit)
	e, seq, ok := f.take(c.rail)
	if !ok {
		return
	}
	if !f.idle() {
		p.ready[kind].Or(bit)
	}
	h := header{typ: frameData, kind: kind, channel: uint16(channel), length: e.n, tag: e.tag, route: p.there, seq: seq,
		ack: tell(p.in.find(kind, channel))}
	c.send.head(&h)
	c.send.whose = p.f
	if e.n == 0 {
		e.b.Put()
		return
	}
	c.send.add(e.b.Bytes()[:e.n], e.b)
}

// head adds a frame's header.
func (s *sender) head(h *header) {
	b := s.heads[s.frames][:]
	s.frames++
	h.encode(b)
	s.add(b, nil)
}

// add adds a piece of at least one byte, which owner may give back once it is sent.
func (s *sender) add(b []byte, owner *staging.Buf) {
	s.iov[s.count].Base = &b[0]
	s.iov[s.count].SetLen(len(b))
	s.owner[s.count] = owner
	s.count++
	if owner != nil {
		s.bytes += len(b)
	}
}

// dropBatch frees what is on its way.
func (c *conn) dropBatch() {
	for c.send.first < c.send.count {
		c.send.drop()
	}
}
