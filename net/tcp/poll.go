package tcp

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// reading is a fabric's side of its sockets' readiness.
type reading struct {
	rx    baton
	dying atomic.Bool              // a rail has failed whose socket is still open
	taken atomic.Bool              // the thread in the operation reads: the background keeps away
	fired atomic.Bool              // the event for which the background was armed is used up
	set   atomic.Pointer[epollSet] // nil before the first connection
	sole  atomic.Pointer[conn]     // the only connection there is; nil: none, or several

	// Guarded by rx.
	armed  bool    // an event of the set wakes the background
	looks  uint    // since the set was asked last
	more   []*conn // connections that used up their quantum: no edge will come for what they have left
	events [32]unix.EpollEvent
}

// epollSet is all sockets of a fabric, and its place in the background's set.
type epollSet struct {
	ep    int
	watch int // the background's
	timer int // in watch, for Rest
	id    int32
}

// socketEvents are edges: each is reported once, and then the socket is used until it says EAGAIN.
const socketEvents = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// Take tells the background that the calling thread reads the sockets itself, by Poll, until Give.
func (f *Fabric) Take() { f.taken.Store(true) }

// Poll reads and writes what the sockets have ready, at most about one large slice of each connection, and reports whether
// anything moved. It never blocks, and does not call wake.
func (f *Fabric) Poll() (moved bool) {
	if !f.rx.take() {
		return false
	}
	for more := true; more; more = !f.rx.pass() {
		moved = f.look() || moved
		if !f.taken.Load() {
			moved = f.steps(nil) || moved // no event would wake the background for what is left over
		}
		f.arm()
	}
	return moved
}

// mostLooks is how often in a row a thread reads an only connection without asking for events. Those that stay behind would end its sleep.
const mostLooks = 8

// look is step for a thread that looks again and again. To ask whether the only connection there is has something costs as much as to
// read it.
func (f *Fabric) look() bool {
	c := f.sole.Load()
	if f.looks++; c == nil || f.looks >= mostLooks || c.blocked.Load() || c.closed || c.recv.more || f.dying.Load() {
		f.looks = 0
		return f.step()
	}
	return f.read(c)
}

// Give hands the sockets back to the background; a thread does so before it sleeps and when its operation is over. What has
// arrived by then is in the ports: look at them once more before sleeping.
func (f *Fabric) Give() {
	f.taken.Store(false)
	f.serve(nil)
}

// Sleep returns when a socket is ready (true), or after d, a millisecond at least (false). It is for the thread between Take and Give,
// after a Poll that found nothing.
func (f *Fabric) Sleep(d time.Duration) bool {
	set := f.set.Load()
	if set == nil {
		return false
	}
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(set.ep), Events: unix.POLLIN}}, max(1, int(d/time.Millisecond)))
	return n > 0
}

// background is what the watcher calls when something is ready.
func (f *Fabric) background() {
	f.fired.Store(true)
	f.attend()
}

// attend serves on the thread of the background.
func (f *Fabric) attend() {
	if f.onBackground != nil {
		f.onBackground()
	}
	f.serve(f.wake)
}

// serve reads until nothing is ready and arms the background for what comes then; wake, if any, is called as things come in.
func (f *Fabric) serve(wake func()) {
	if !f.rx.take() {
		return
	}
	for more := true; more; more = !f.rx.pass() {
		if !f.taken.Load() {
			f.steps(wake)
		}
		f.arm()
	}
}

// steps goes on until nothing is ready, or the thread in the operation takes over.
func (f *Fabric) steps(wake func()) (moved bool) {
	for f.step() {
		moved = true
		if wake != nil {
			wake()
		}
		if f.taken.Load() {
			break
		}
	}
	return moved
}

// arm makes events wake the background, or not, as taken says. What is ready already wakes it at once.
func (f *Fabric) arm() {
	if f.fired.Load() {
		f.fired.Store(false)
		f.armed = false
	}
	on, set := !f.taken.Load(), f.set.Load()
	if on == f.armed || set == nil {
		return
	}
	events := uint32(unix.EPOLLONESHOT)
	if on {
		events |= unix.EPOLLIN
	}
	if epollCtl(set.watch, unix.EPOLL_CTL_MOD, set.ep, events, set.id) == nil {
		f.armed = on
	}
}

// step serves each connection that is ready once, and reports whether anything moved.
func (f *Fabric) step() (moved bool) {
	if f.dying.Load() {
		f.bury()
	}
	left := f.more
	f.more = f.more[:0]
	for _, c := range left {
		c.recv.more = false
		moved = f.read(c) || moved
	}
	n := 0
	if set := f.set.Load(); set != nil {
		n = epollReady(set.ep, f.events[:])
	}
	for i := range f.events[:n] {
		moved = f.event(&f.events[i]) || moved
	}
	return moved
}

func (f *Fabric) event(e *unix.EpollEvent) (moved bool) {
	c := f.peers[e.Fd/MaxRails].rails[e.Fd%MaxRails].Load()
	if c == nil {
		return false // Add failed
	}
	if e.Events&unix.EPOLLOUT != 0 {
		c.blocked.Store(false)
		moved = c.peer.flush()
	} else if e.Events&unix.EPOLLERR != 0 && c.zero != nil {
		moved = c.peer.flush() // the kernel has done with a buffer
	}
	if e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP) != 0 || e.Events&unix.EPOLLERR != 0 && c.zero == nil {
		c.recv.hup = true
	}
	if e.Events&^unix.EPOLLOUT != 0 && !c.recv.more {
		moved = f.read(c) || moved
	}
	return moved
}

// read lets c read its quantum. f.more has room for every connection, and a connection stands in it once: step empties it first.
func (f *Fabric) read(c *conn) bool {
	moved, drained := c.read()
	if !drained {
		c.recv.more = true
		f.more = append(f.more, c)
	}
	return moved
}
