package tcp

import (
	"fmt"
	"time"
)

// of finds whose frame h is, nil: of nobody who is still there. Frames of one peer mostly come together.
func (c *conn) of(h *header) *peer {
	if p := c.recv.peer; p != nil && p.here == h.route {
		return p
	}
	p := c.link.find(h.route)
	if p != nil {
		c.recv.peer = p
	}
	return p
}

// frame acts on a frame whose header is taken from the stash.
func (c *conn) frame(h *header) error {
	if c.left {
		return c.bad("a frame behind its goodbye")
	}
	switch h.typ {
	case frameDrop:
		c.dropped(h.seq)
		return nil
	case frameGone:
		c.link.forgotten(h.seq, h.ack != 0)
		return nil
	case frameGoodbye:
		c.left = true
		c.part()
		c.link.flush()
		return nil
	}
	if h.typ == frameAnnounce || h.typ == frameLeave {
		return c.announced(h)
	}
	p := c.of(h)
	if p == nil {
		return c.stray(h)
	}
	if h.typ != frameControl && h.typ != frameHeard { // of which few are worth waking a thread for
		c.link.net.stir(p.f)
	}
	switch h.typ {
	case frameData:
		if err := c.acked(p, h); err != nil {
			return err
		}
		return c.slice(p, h)
	case frameAck:
		return c.acked(p, h)
	case frameControl:
		b := c.recv.stash[c.recv.r:][:h.length]
		c.recv.r += len(b)
		return c.control(p, h, b)
	case frameHeard:
		if bad := p.forget(h.ack); bad != "" {
			return c.bad(bad)
		}
	}
	return nil
}

// stray skips a frame to a rank that has left its communicator, and says so where the sender may wait for an answer: the goodbye may
// not have got away in the time that there was for it.
func (c *conn) stray(h *header) error {
	switch h.typ {
	case frameControl:
		c.recv.r += int(h.length)
		c.link.answer(stray{route: h.route})
		c.recv.asks = true
	case frameData:
		c.link.answer(stray{route: h.route})
		c.recv.asks = true
		c.recv.flow = nil
		return c.begin(h)
	}
	return nil
}

// control passes a message on. One that was heard already comes again by a new lead; one that is ahead cannot be.
func (c *conn) control(p *peer, h *header, b []byte) error {
	heard := p.heard.Load()
	if h.seq > heard {
		return c.bad(fmt.Sprintf("control message %d where %d was due", h.seq, heard))
	}
	p.replies.Store(true)
	c.ask(p)
	if h.seq < heard {
		return nil
	}
	p.heard.Store(heard + 1)
	p.hear(b)
	return nil
}

// dropped ends a rail that the other end has given up. One cannot say so of the rail that it says it by.
func (c *conn) dropped(rail uint64) {
	if rail >= MaxRails || rail == uint64(c.rail) {
		return
	}
	if d := c.link.rails[rail].Load(); d != nil {
		now := time.Now()
		c.link.upset.Store(&now)
		d.fail(&GoneError{Cause: errDropped})
	}
}

func (c *conn) bad(what string) error { return &FrameError{What: what} }

func (c *conn) acked(p *peer, h *header) error {
	f := p.out.find(h.kind, int(h.channel))
	switch {
	case f == nil && h.ack == 0 || f != nil && h.ack == f.acked.Load():
		return nil
	case f == nil:
		return c.bad("an ack of a flow that was never written")
	}
	if bad := f.ack(h.ack); bad != "" {
		return c.bad(bad)
	}
	p.acks[h.kind].Or(1 << h.channel)
	c.ask(p)
	return nil
}

// ask has the sender look at p once all that has arrived is taken in.
func (c *conn) ask(p *peer) {
	c.recv.asks = true
	p.list()
}
