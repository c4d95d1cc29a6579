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

// sender holds the frames that are on their way into the socket, in pieces. It is guarded by the peer's tx baton. A new batch is made
// when the last one is gone: control frames first, then acks, then one slice of each flow in turn.
type sender struct {
	heads   [batchFrames][headerSize]byte
	iov     [2*batchFrames + 1]unix.Iovec
	owner   [2*batchFrames + 1]*staging.Buf // whose memory a piece is; nil: a header or control frames
	first   int                             // pieces before it are sent
	count   int
	frames  int
	bytes   int
	control []byte // the control frames in this batch
	turn    int    // the flow after the one served last: kind*MaxChannels + channel
	bye     bool   // the goodbye is in this batch or sent: nothing follows
	broken  bool   // the socket takes nothing more; the reader finds out why
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
	for ; most > 0 && (s.first < s.count || c.fill(batch)); most-- {
		c.blocked.Store(true)
		n, e := c.write()
		switch e {
		case 0:
			s.sent(n)
			c.sent.Store(c.sent.Load() + uint64(n))
			moved = true
		case unix.EINTR:
			most++
		case unix.EAGAIN:
			c.f.unsent.Store(true) // the poller says when there is room
			return moved
		default:
			// What the peer sent before it closed, perhaps a goodbye, is still to be read: the reader judges.
			s.broken = true
			c.dropBatch()
			return moved
		}
		c.blocked.Store(false)
	}
	if s.bye && s.first == s.count && !s.broken {
		s.broken = true // nothing may follow
		_ = unix.Shutdown(c.fd, unix.SHUT_WR)
		c.said.Store(true)
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

// fill makes the next batch and reports whether there is one.
func (c *conn) fill(batch int) bool {
	s, p := &c.send, c.peer
	s.first, s.count, s.frames, s.bytes = 0, 0, 0, 0
	if s.bye || c.state.Load() != railLive {
		return false
	}
	if p.news.Load() && p.leads(c) {
		if s.control = p.takeQueued(s.control[:0], batchBytes); len(s.control) > 0 {
			s.add(s.control, nil)
		}
	}
	c.fillNotices()
	c.fillAcks()
	c.fillSlices(batch)
	if s.count == 0 && p.news.Load() && p.idle() && p.done() {
		if p.bye == 0 {
			p.bye = p.live()
		}
		s.head(&header{typ: frameGoodbye, seq: uint64(p.bye)})
		s.bye = true
	}
	return s.count > 0
}

// fillNotices says how many control messages were heard and which rails were given up.
func (c *conn) fillNotices() {
	p := c.peer
	if p.replies.Load() && p.replies.Swap(false) {
		c.send.head(&header{typ: frameHeard, ack: p.heard.Load()})
	}
	if p.drops.Load() == 0 {
		return
	}
	for w := p.drops.Swap(0); w != 0; w &= w - 1 {
		c.send.head(&header{typ: frameDrop, seq: uint64(bits.TrailingZeros32(w))})
	}
}

func (c *conn) fillAcks() {
	for kind := range c.peer.owed {
		owed := &c.peer.owed[kind]
		for w := owed.Load(); w != 0 && c.send.frames < batchFrames; w &= w - 1 {
			channel := bits.TrailingZeros64(w)
			owed.And(^(uint64(1) << channel))
			if f := c.peer.in.find(proto.Kind(kind), channel); f.released.Load() != f.told.Load() {
				h := header{typ: frameAck, kind: proto.Kind(kind), channel: uint16(channel), ack: tell(f)}
				c.send.head(&h)
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

// fillSlices takes one slice of each flow that has some, beginning behind the flow served last, until the batch is large enough.
func (c *conn) fillSlices(batch int) {
	const flows = len(c.peer.ready) * MaxChannels
	s := &c.send
	for seen := 0; seen < flows && s.frames < batchFrames && s.bytes < batch; {
		kind, channel := s.turn/MaxChannels, s.turn%MaxChannels
		w := c.peer.ready[kind].Load() >> channel
		if w == 0 { // none in the rest of this row
			seen += MaxChannels - channel
			s.turn = (kind + 1) % len(c.peer.ready) * MaxChannels
			continue
		}
		skip := bits.TrailingZeros64(w)
		seen += skip + 1
		c.fillSlice(proto.Kind(kind), channel+skip)
		s.turn = (s.turn + skip + 1) % flows
	}
}

func (c *conn) fillSlice(kind proto.Kind, channel int) {
	p, bit := c.peer, uint64(1)<<channel
	f := p.out.find(kind, channel)
	p.ready[kind].And(^bit)
	e, seq, ok := f.take(c.rail)
	if !ok {
		return
	}
	if !f.idle() {
		p.ready[kind].Or(bit)
	}
	h := header{typ: frameData, kind: kind, channel: uint16(channel), length: e.n, tag: e.tag, seq: seq,
		ack: tell(p.in.find(kind, channel))}
	c.send.head(&h)
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
