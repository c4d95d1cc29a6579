package tcp

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/net/staging"
)

const (
	stashSize = 4096     // room for some small frames, and for the largest control frame at once
	quantum   = MaxSlice // bytes that one connection may read before the others have their turn
)

// receiver turns the bytes of a socket into frames. It is guarded by the fabric's rx baton.
//
// One system call reads the rest of a slice straight into its staging and, behind it, into the stash what follows: the next
// header, or a number of small frames at once.
type receiver struct {
	stash [stashSize]byte
	r, w  int     // stash[r:w] is unread
	flow  *inFlow // whose slice is being read; nil: between frames
	slice slice   // the slice being read
	seq   uint64  // its number
	got   int     // bytes of it that are there
	iov   [2]unix.Iovec
	hup   bool // the other end has closed: read until end-of-file
	more  bool // in the fabric's list of those that have more to read
	done  bool // nothing more will be read
}

// read takes in what has arrived, about a quantum at most. drained is false when there may be more.
func (c *conn) read() (moved, drained bool) {
	moved, drained = c.take()
	if moved && c.peer.calls() {
		c.peer.flush()
	}
	return moved, drained
}

func (c *conn) take() (moved, drained bool) {
	for total := 0; total < quantum; {
		if c.recv.done {
			return moved, true
		}
		n, short, e := c.recv.fill(c.fd)
		switch {
		case e == unix.EINTR:
			continue
		case e == unix.EAGAIN:
			return moved, true
		case e != 0:
			c.ended(sysErr("recvmsg", e))
			return true, true
		case n == 0:
			c.ended(io.EOF)
			return true, true
		}
		total += n
		moved = true
		if err := c.parse(); err != nil { // nothing of a peer that breaks the rules is believed any more
			c.recv.done = true
			c.peer.lose(err)
			c.fail(err)
			return true, true
		}
		if short && !c.recv.hup { // less came than there was room for: what comes later is a new event
			return true, true
		}
	}
	return moved, false
}

// ended is the end of the stream. After a goodbye it is as it should be.
func (c *conn) ended(err error) {
	c.recv.done = true
	if c.left {
		c.state.Store(railDead)
		c.f.dying.Store(true)
	} else {
		c.fail(&GoneError{Rank: c.peer.rank, Cause: err})
	}
	c.f.farewell(c.peer)
}

// fill reads once. parse has left less than a frame of the stash, or nothing when a slice is under way.
func (r *receiver) fill(fd int) (n int, short bool, e unix.Errno) {
	copy(r.stash[:], r.stash[r.r:r.w])
	r.r, r.w = 0, r.w-r.r
	iov, rest := r.iov[1:], 0
	if r.flow != nil {
		into := r.slice.b.Bytes()[r.got:r.slice.n]
		rest = len(into)
		r.iov[0].Base = &into[0]
		r.iov[0].SetLen(rest)
		iov = r.iov[:]
	}
	r.iov[1].Base = &r.stash[r.w]
	r.iov[1].SetLen(len(r.stash) - r.w)
	room := rest + len(r.stash) - r.w
	n, e = recvmsg(fd, iov)
	if e != 0 {
		return 0, false, e
	}
	r.got += min(n, rest)
	r.w += max(n-rest, 0)
	return n, n < room, 0
}

// parse takes whole frames, and the beginning of a slice, from what was read. An error is the end of the connection.
func (c *conn) parse() error {
	r := &c.recv
	for {
		if r.flow != nil && !r.complete() {
			return nil
		}
		if r.w-r.r < headerSize {
			return nil
		}
		var h header
		if bad := h.decode(r.stash[r.r:r.w]); bad != "" {
			return c.bad(bad)
		}
		if h.typ == frameControl && r.w-r.r < headerSize+int(h.length) {
			return nil // it is read as a whole; the stash has room for it
		}
		r.r += headerSize
		if err := c.frame(&h); err != nil {
			return err
		}
	}
}

// complete moves what the stash has of the slice under way and delivers the slice if that was the rest.
func (r *receiver) complete() bool {
	n := copy(r.slice.b.Bytes()[r.got:r.slice.n], r.stash[r.r:r.w])
	r.got += n
	r.r += n
	if r.got < int(r.slice.n) {
		return false
	}
	f := r.flow
	r.flow = nil
	f.deliver(r.seq, r.slice)
	r.slice = slice{}
	return true
}

// frame acts on a frame whose header is taken from the stash.
func (c *conn) frame(h *header) error {
	if c.left {
		return c.bad("a frame behind its goodbye")
	}
	switch h.typ {
	case frameData:
		if err := c.acked(h); err != nil {
			return err
		}
		return c.slice(h)
	case frameAck:
		return c.acked(h)
	case frameControl:
		b := c.recv.stash[c.recv.r:][:h.length]
		c.recv.r += len(b)
		return c.control(h.seq, b)
	case frameHeard:
		if bad := c.peer.forget(h.ack); bad != "" {
			return c.bad(bad)
		}
	case frameDrop:
		c.dropped(h.seq)
	case frameGoodbye:
		c.left = true
		c.f.goodbye(c.peer, uint32(h.seq)|1<<c.rail)
	}
	return nil
}

// control passes a message on. One that was heard already comes again by a new lead; one that is ahead cannot be.
func (c *conn) control(seq uint64, b []byte) error {
	p := c.peer
	heard := p.heard.Load()
	if seq > heard {
		return c.bad(fmt.Sprintf("control message %d where %d was due", seq, heard))
	}
	p.replies.Store(true)
	if seq < heard {
		return nil
	}
	p.heard.Store(heard + 1)
	if c.f.onControl != nil && !c.f.closed.Load() {
		c.f.onControl(p.rank, b)
	}
	return nil
}

// dropped ends a rail that the peer has given up. One cannot say so of the rail that it says it by.
func (c *conn) dropped(rail uint64) {
	if rail >= MaxRails || rail == uint64(c.rail) {
		return
	}
	if d := c.peer.rails[rail].Load(); d != nil {
		d.fail(&GoneError{Rank: c.peer.rank, Cause: errDropped})
	}
}

func (c *conn) bad(what string) error { return &FrameError{Rank: c.peer.rank, What: what} }

func (c *conn) acked(h *header) error {
	f := c.peer.out.find(h.kind, int(h.channel))
	switch {
	case f == nil && h.ack == 0:
		return nil
	case f == nil:
		return c.bad("an ack of a flow that was never written")
	}
	if bad := f.ack(h.ack); bad != "" {
		return c.bad(bad)
	}
	c.peer.acks[h.kind].Or(1 << h.channel)
	return nil
}

// slice begins the slice that h announces.
func (c *conn) slice(h *header) error {
	f := c.peer.in.open(h.kind, int(h.channel))
	if _, bad := f.room(h.seq); bad != "" { // one that is here already is read as well, and dropped
		return c.bad(bad)
	}
	b := staging.Shared.Get(uint64(h.length), true)
	if b == nil {
		return &GoneError{Rank: c.peer.rank, Cause: errNoStaging}
	}
	c.recv.flow, c.recv.seq, c.recv.got = f, h.seq, 0
	c.recv.slice = slice{b: b, n: h.length, tag: h.tag}
	return nil
}

// drop frees the slice under way.
func (r *receiver) drop() {
	if r.flow != nil {
		r.slice.b.Put()
		r.flow, r.slice = nil, slice{}
	}
}
