package tcp

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/net/staging"
)

// drainTick is how often Close asks the kernel whether the peers' hosts have taken everything: there is no event for it.
const drainTick = time.Millisecond

// Close says goodbye to every peer behind what was committed, waits at most drain until the peers' hosts have taken all of it, and
// frees everything. It does not wait for the peers to leave. Ports must not be used during and after it; Control then fails. It is
// safe to call twice.
func (f *Fabric) Close(drain time.Duration) {
	if !f.closed.CompareAndSwap(false, true) {
		return
	}
	f.Take()
	end := time.Now().Add(drain)
	f.wait(end.Add(-drain/2), (*peer).delivered)
	for _, p := range f.peers {
		p.leave()
		p.flush()
	}
	f.wait(end, (*peer).parted)
	f.free()
}

// wait polls until ok holds for every peer that is still there, or the time is over.
func (f *Fabric) wait(end time.Time, ok func(*peer) bool) {
	all := func() bool {
		return !slices.ContainsFunc(f.peers, func(p *peer) bool { return p.lost() == nil && !ok(p) })
	}
	for !all() && time.Now().Before(end) {
		f.Poll()
		f.Tend()
		f.pause(time.Until(end))
	}
}

// delivered reports whether the peer's host has all that was committed. It matters where several rails carry it: what one of them
// loses after the goodbye cannot be sent again.
func (p *peer) delivered() bool {
	live := p.live()
	if live&(live-1) == 0 {
		return true
	}
	for k := range p.rails {
		if live>>k&1 != 0 && p.rails[k].Load().unacked() > 0 {
			return false
		}
	}
	return p.idle()
}

// parted reports whether the peer has our goodbye, or its host has.
func (p *peer) parted() bool {
	for k := range p.rails {
		if c := p.rails[k].Load(); c != nil && c.state.Load() == railLive && (!c.said.Load() || c.unacked() > 0) {
			return false
		}
	}
	return true
}

// pause sleeps until a socket is ready, for a tick at most.
func (f *Fabric) pause(left time.Duration) {
	ms := int(min(left, drainTick) / time.Millisecond)
	set := f.set.Load()
	if ms <= 0 || set == nil {
		return
	}
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(set.ep), Events: unix.POLLIN}}, ms) // EINTR: the caller looks again
}

// free ends all threads' use of the sockets before it closes them.
func (f *Fabric) free() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rx.close()
	set := f.set.Load()
	for _, p := range f.peers {
		p.tx.close()
		for k := range p.rails {
			if c := p.rails[k].Load(); c != nil {
				c.free(set)
			}
		}
		p.drop()
	}
	for _, c := range f.graves {
		c.free(set)
	}
	if set != nil {
		background.remove(set.id, set.ep)
		closeFD(set.ep)
	}
	f.self.each((*inFlow).drop)
	for _, o := range f.outs {
		o.drop()
	}
	staging.Shared.Leave()
}

// free closes the socket, once. It leaves the epoll set first: a forked child that holds the descriptor would keep it there. Nobody
// else uses the connection.
func (c *conn) free(set *epollSet) {
	if c.closed {
		return
	}
	c.closed = true
	_ = epollCtl(set.ep, unix.EPOLL_CTL_DEL, c.fd, 0, 0)
	if c.zero != nil {
		c.unpin()
	}
	_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	shaping.remove(c)
	closeFD(c.fd)
	c.dropBatch()
	c.recv.drop()
	if c.zero != nil {
		c.zero.forsake()
	}
}
