package tcp

import (
	"time"

	"golang.org/x/sys/unix"
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
	for _, p := range f.peers {
		p.leave()
		p.flush()
	}
	for end := time.Now().Add(drain); !f.drained() && time.Now().Before(end); {
		f.Poll()
		f.pause(time.Until(end))
	}
	f.free()
}

// drained reports whether every peer that is still there has our goodbye, or its host has.
func (f *Fabric) drained() bool {
	for _, p := range f.peers {
		c := p.conn.Load()
		if c == nil || p.lost() != nil {
			continue
		}
		if !c.said.Load() || c.unacked() > 0 {
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
		if c := p.conn.Load(); c != nil {
			c.free(set)
		}
		p.drop()
	}
	if set != nil {
		background.remove(set.id, set.ep)
		closeFD(set.ep)
	}
	f.self.each((*inFlow).drop)
	for _, o := range f.outs {
		o.drop()
	}
	staging.trim()
}

// free closes the socket. It leaves the epoll set first: a forked child that holds the descriptor would keep it there.
func (c *conn) free(set *epollSet) {
	c.tx.close()
	_ = epollCtl(set.ep, unix.EPOLL_CTL_DEL, c.fd, 0, 0)
	_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	closeFD(c.fd)
	c.dropAll()
	c.recv.drop()
}
