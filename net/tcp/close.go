package tcp

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/net/staging"
)

// drainTick is how often Close asks the kernel whether the peers' hosts have taken everything: there is no event for it.
const drainTick = time.Millisecond

// departure is how far a rank's goodbye to its peers of a link has got.
type departure struct {
	t     *party
	peers []*peer          // those that are there
	put   [MaxRails]uint64 // of each rail: where in its stream the last of what is for them ends
	sure  bool             // put is known
}

// Close says goodbye to every peer behind what was committed, waits at most drain until the peers' hosts have taken all of it, and
// frees everything. It does not wait for the peers to leave, nor for what other communicators send. Ports must not be used during and
// after it; Control then fails. It is safe to call twice.
func (f *Fabric) Close(drain time.Duration) {
	if !f.closed.CompareAndSwap(false, true) {
		return
	}
	f.Take()
	var all []*departure
	for _, t := range f.parties {
		if d := (&departure{t: t, peers: slices.Clone(t.peers)}); d.anybody() {
			t.leave()
			all = append(all, d)
		}
	}
	f.flush()
	for end := time.Now().Add(drain); ; {
		all = slices.DeleteFunc(all, (*departure).done)
		if len(all) == 0 || !time.Now().Before(end) {
			break
		}
		f.Poll()
		f.net.Tend()
		f.net.pause(time.Until(end))
	}
	f.net.mu.Lock()
	for _, d := range all {
		d.t.link.each((*conn).outlast)
	}
	f.net.mu.Unlock()
	f.free()
	f.stand(away)
	f.net.serve(nil)
}

// anybody reports whether peers are there.
func (d *departure) anybody() bool {
	d.peers = slices.DeleteFunc(d.peers, func(p *peer) bool { return p.lost() != nil })
	return len(d.peers) > 0
}

// done reports whether the peers' host has all that is for them, or there is nobody to have it.
func (d *departure) done() bool {
	if !d.anybody() {
		return true
	}
	l := d.t.link
	idle := d.t.said() && !slices.ContainsFunc(d.peers, func(p *peer) bool { return !l.idle(p) })
	if !idle {
		d.sure = false
		return false
	}
	if l.with(railLive)|l.with(railSuspect)|l.with(railParting) == 0 {
		return true
	}
	if !d.sure {
		l.tx.wait() // whoever has taken the last of it has put it by now
		for k := range l.rails {
			if c := l.rails[k].Load(); c != nil {
				d.put[k] = c.put.Load()
			}
		}
		d.sure = true
		for !l.tx.pass() {
			l.sendSome()
		}
	}
	for k, put := range d.put {
		c := l.rails[k].Load()
		if c == nil {
			continue
		}
		if s := c.state.Load(); (s == railLive || s == railParting) && c.sent.Load() < put+uint64(c.unacked()) {
			return false
		}
	}
	return true
}

// idle reports whether all that is for p alone has been taken by rails that have not failed since.
func (l *Link) idle(p *peer) bool { return l.orphans.Load() == 0 && p.idle() && p.said() }

// pause sleeps until a socket is ready, for a tick at most.
func (n *Net) pause(left time.Duration) {
	ms := int(min(left, drainTick) / time.Millisecond)
	set := n.set.Load()
	if ms <= 0 || set == nil {
		return
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(set.ep), Events: unix.POLLIN}}, ms) // EINTR: the caller looks again
}

// free ends the peers' part in their links. What others send goes on.
func (f *Fabric) free() {
	f.ends.Lock() // whoever tells of an end has told
	f.ends.Unlock()
	f.net.exclusively(func() {
		for _, t := range f.parties {
			t.link.detach(t)
		}
		f.ended = true
		f.net.stirred = slices.DeleteFunc(f.net.stirred, func(s *Fabric) bool { return s == f })
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.self.each((*inFlow).drop)
	for _, o := range f.outs {
		o.drop()
	}
	staging.Shared.Leave()
}

// free closes the socket, once. It leaves the epoll set first: a forked child that holds the descriptor would keep it there. Nobody
// else uses the connection. Net.mu is held.
func (c *conn) free() {
	if c.closed {
		return
	}
	n := c.link.net
	c.closed = true
	n.strike(c)
	_ = epollCtl(n.set.Load().ep, unix.EPOLL_CTL_DEL, c.fd, 0, 0)
	if c.zero != nil {
		c.unpin()
	}
	_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	shaping.remove(c)
	closeFD(c.fd)
	n.more = slices.DeleteFunc(n.more, func(m *conn) bool { return m == c })
	c.dropBatch()
	c.recv.drop()
	if c.zero != nil {
		c.zero.forsake()
	}
}
