package tcp

import (
	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/secure"
	"hccl.dev/hccl/net/staging"
)

const (
	stashSize = 4096     // room for some small frames, and for the largest control frame at once
	quantum   = MaxSlice // bytes that one connection may read before the others have their turn
)

// receiver turns the bytes of a socket into frames. It is guarded by the rx baton.
//
// One system call reads the rest of a slice straight into its staging and, behind it, into the stash what follows: the next
// header, or a number of small frames at once.
type receiver struct {
	stash [stashSize]byte
	r, w  int     // stash[r:w] is unread
	peer  *peer   // whose frame came last
	flow  *inFlow // where the slice goes that is being read; nil: nobody wants it
	slice slice   // the slice being read; without memory: between frames
	seq   uint64  // its number
	got   int     // bytes of it that are there
	iov   [2]unix.Iovec
	hup   bool // the other end has closed: read until end-of-file
	asks  bool // for the sender
	more  bool // in the list of those that have more to read
	done  bool // nothing more will be read
}

// read takes in what has arrived, about a quantum at most. drained is false when there may be more.
func (c *conn) read() (moved, drained bool) {
	moved, drained = c.take()
	if c.recv.asks { // what was read asks for the sender: slices to be freed, or a reply
		c.recv.asks = false
		c.link.flush()
	}
	return moved, drained
}

func (c *conn) take() (moved, drained bool) {
	for total := 0; total < quantum; {
		if c.recv.done {
			return moved, true
		}
		n, short, err := c.recv.fill(c.fd, c.unseal)
		switch err {
		case nil:
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return moved, true
		default:
			c.ended(err)
			return true, true
		}
		total += n
		moved = true
		c.got.Add(uint64(n))
		if err := c.parse(); err != nil { // nothing of a peer that breaks the rules is believed any more
			c.recv.done = true
			c.link.lose(err)
			c.fail(err)
			return true, true
		}
		if short && !c.recv.hup { // less came than there was room for: what comes later is a new event
			return true, true
		}
	}
	return moved, false
}

// ended is the end of the stream. After a goodbye it is as it should be, and where all ranks over there have left: their process ends. What
// this end has begun to send before its own goodbye still goes.
func (c *conn) ended(err error) {
	c.recv.done = true
	switch {
	case err == secure.ErrForged:
		c.fail(&ForgedError{Cause: err})
		return
	case !c.left && !c.link.leaves():
		if e, ok := err.(unix.Errno); ok {
			err = sysErr("recvmsg", e)
		}
		c.fail(&GoneError{Cause: err})
		return
	}
	if c.over.Store(c.left); !c.left || c.said.Load() || c.mute.Load() {
		c.rest()
	}
	c.link.flush() // what came up meanwhile asks for a new rail
}

// rest is the end of a rail both ways. What did not get away goes by others.
func (c *conn) rest() {
	if c.over.Load() && !c.said.Load() {
		c.link.orphans.Or(1 << c.rail)
	}
	c.state.Store(railDead)
	c.link.net.dying.Store(true)
}

// lastWords bounds, in quanta, what is read of a rail for the goodbyes in it.
const lastWords = 64

// leaves reports whether all ranks at the other end have said goodbye, by a rail that may not have been read so far. A process does not
// end before the goodbyes have come to this host.
func (l *Link) leaves() bool {
	for k := range l.rails {
		c := l.rails[k].Load()
		if c == nil || c.closed || c.recv.done {
			continue
		}
		drained := false
		for n := 0; !drained && n < lastWords && !l.deserted(); n++ {
			_, drained = c.read()
		}
		if !drained {
			l.net.goOn(c)
		}
	}
	return l.deserted()
}

// fill reads once; short: nothing is left to read. parse has left less than a frame of the stash, or nothing when a slice is under way.
func (r *receiver) fill(fd int, by *unsealing) (n int, short bool, err error) {
	copy(r.stash[:], r.stash[r.r:r.w])
	r.r, r.w = 0, r.w-r.r
	iov, rest := r.iov[1:], 0
	if r.slice.b != nil {
		into := r.slice.b.Bytes()[r.got:r.slice.n]
		rest = len(into)
		r.iov[0].Base = &into[0]
		r.iov[0].SetLen(rest)
		iov = r.iov[:]
	}
	r.iov[1].Base = &r.stash[r.w]
	r.iov[1].SetLen(len(r.stash) - r.w)
	room := rest + len(r.stash) - r.w
	n, short, err = by.recv(fd, iov, room)
	r.got += min(n, rest)
	r.w += max(n-rest, 0)
	return n, short, err
}

// parse takes whole frames, and the beginning of a slice, from what was read. An error is the end of the link.
func (c *conn) parse() error {
	r := &c.recv
	for {
		if r.slice.b != nil && !c.complete() {
			return nil
		}
		if r.w-r.r < headerSize {
			return nil
		}
		var h header
		if bad := h.decode(r.stash[r.r:r.w]); bad != "" {
			return c.bad(bad)
		}
		if h.whole() && r.w-r.r < headerSize+int(h.length) {
			return nil // the stash has room for it
		}
		r.r += headerSize
		if err := c.frame(&h); err != nil {
			return err
		}
	}
}

// complete moves what the stash has of the slice under way and delivers the slice if that was the rest.
func (c *conn) complete() bool {
	r := &c.recv
	if r.flow != nil {
		c.link.net.stir(r.peer.f)
	}
	n := copy(r.slice.b.Bytes()[r.got:r.slice.n], r.stash[r.r:r.w])
	r.got += n
	r.r += n
	if r.got < int(r.slice.n) {
		return false
	}
	s := r.slice
	r.slice = slice{}
	if r.flow == nil {
		s.b.Put()
		return true
	}
	r.flow.deliver(r.seq, s)
	if r.peer.quits {
		r.peer.parts()
	}
	return true
}

// slice begins the slice that h announces.
func (c *conn) slice(p *peer, h *header) error {
	f := p.in.open(h.kind, int(h.channel))
	if _, bad := f.room(h.seq); bad != "" { // one that is here already is read as well, and dropped
		return c.bad(bad)
	}
	c.recv.flow = f
	return c.begin(h)
}

func (c *conn) begin(h *header) error {
	b := staging.Shared.Get(uint64(h.length), true)
	if b == nil {
		return &GoneError{Cause: errNoStaging}
	}
	c.recv.seq, c.recv.got = h.seq, 0
	c.recv.slice = slice{b: b, n: h.length, tag: h.tag}
	return nil
}

// disown has what comes for f skipped.
func (r *receiver) disown(f *Fabric) {
	if r.peer != nil && r.peer.f == f {
		r.peer, r.flow = nil, nil
	}
}

// drop frees the slice under way.
func (r *receiver) drop() {
	if r.slice.b != nil {
		r.slice.b.Put()
		r.slice = slice{}
	}
}
