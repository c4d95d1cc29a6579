package tcp

import (
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// reading is a Net's side of its sockets' readiness.
type reading struct {
	rx     baton
	alone  sync.Mutex               // of those who want rx for themselves
	dying  atomic.Bool              // a rail has failed whose socket is still open
	takers atomic.Int32             // threads in operations that read: the background keeps away while there is one
	leaned atomic.Int32             // fabrics whose threads sleep until somebody reads for them
	hands  atomic.Int32             // who wants the rx baton for themselves: readers are quick then
	fired  atomic.Bool              // the event for which the background was armed is used up
	asleep atomic.Pointer[Fabric]   // whose thread sleeps on the sockets
	set    atomic.Pointer[epollSet] // nil while there are no sockets
	sole   atomic.Pointer[conn]     // the only connection there is; nil: none, or several

	// Guarded by rx.
	armed   bool      // an event of the set wakes the background
	looks   uint      // since the set was asked last
	more    []*conn   // connections that used up their quantum: no edge will come for what they have left
	left    []*conn   // more, as of the step before
	stirred []*Fabric // for whom something came
	events  [32]unix.EpollEvent
}

// epollSet is all sockets of a Net, its place in the background's set, and the bell of who sleeps on it.
type epollSet struct {
	ep    int
	bell  int // an eventfd
	watch int // the background's
	timer int // in watch, for Rest
	id    int32
}

// socketEvents are edges: each is reported once, and then the socket is used until it says EAGAIN.
const socketEvents = unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET

// What the thread of a fabric does.
const (
	away  = iota // it computes, or the communicator is not in use
	reads        // it reads for all
	leans        // it sleeps until somebody has read for it
)

// stand changes what the thread does.
func (f *Fabric) stand(now int32) {
	was := f.stance.Swap(now)
	if was == now {
		return
	}
	counts := [...]*atomic.Int32{reads: &f.net.takers, leans: &f.net.leaned}
	if now != away { // first: in between too many count, not too few
		counts[now].Add(1)
	}
	if was != away {
		counts[was].Add(-1)
	}
}

// Take tells the background that the calling thread reads the sockets itself, by Poll, until Give.
func (f *Fabric) Take() { f.stand(reads) }

// Poll reads and writes what the sockets have ready, at most about one large slice of each connection, and reports whether anything
// moved for this fabric. Others are woken. It never blocks, and does not call wake.
func (f *Fabric) Poll() (moved bool) {
	n := f.net
	if !n.rx.try() { // another thread reads, and rings for us
		return f.rung.Swap(false)
	}
	for more := true; more; more = !n.rx.pass() {
		n.look()
		if n.takers.Load() == 0 {
			n.steps(f) // no event would wake the background for what is left over
		}
		moved = n.ring(f) || moved
		n.arm()
	}
	return f.rung.Swap(false) || moved
}

// mostLooks is how often in a row a thread reads an only connection without asking for events. Those that stay behind would end its sleep.
const mostLooks = 8

// look is step for a thread that looks again and again. To ask whether the only connection there is has something costs as much as to
// read it.
func (n *Net) look() {
	c := n.sole.Load()
	if n.looks++; c == nil || n.looks >= mostLooks || c.blocked.Load() || c.closed || c.recv.more || n.dying.Load() {
		n.looks = 0
		n.step()
		return
	}
	n.read(c)
}

// Give hands the sockets back to the background; a thread does so before it sleeps and when its operation is over. What has
// arrived by then is in the ports: look at them once more before sleeping.
func (f *Fabric) Give() {
	f.stand(leans)
	f.net.serve(f)
}

// stir notes that something came for f, unless f has ended: a socket may still hold slices of it. The rx baton is held.
func (n *Net) stir(f *Fabric) {
	if !f.stirred && !f.ended {
		f.stirred = true
		n.stirred = append(n.stirred, f)
	}
}

// ring wakes those for whom something came, and reports whether the reader's own fabric is among them.
func (n *Net) ring(own *Fabric) (mine bool) {
	for _, f := range n.stirred {
		f.stirred = false
		if f == own {
			mine = true
		} else {
			f.rouse()
		}
	}
	clear(n.stirred)
	n.stirred = n.stirred[:0]
	return mine
}

// background is what the watcher calls when something is ready.
func (n *Net) background() {
	n.fired.Store(true)
	n.attend()
}

// attend serves on the thread of the background.
func (n *Net) attend() {
	if n.onBackground != nil {
		runtime.LockOSThread() // or a system call could move the goroutine to another one
		defer runtime.UnlockOSThread()
		n.onBackground()
	}
	n.serve(nil)
}

// serve reads until nothing is ready and arms the background for what comes then, unless a thread reads. Who is waiting for what came
// is woken, but for own.
func (n *Net) serve(own *Fabric) {
	if n.rx.take() {
		n.serveOn(own)
	}
}

func (n *Net) serveOn(own *Fabric) {
	for more := true; more; more = !n.rx.pass() {
		if n.takers.Load() == 0 {
			n.steps(own)
		}
		n.ring(own)
		n.arm()
	}
}

// exclusively runs do while nobody reads. Those who wait for their turn sleep: hundreds that look for it would keep the processors from
// whoever has it.
func (n *Net) exclusively(do func()) {
	n.alone.Lock()
	defer n.alone.Unlock()
	n.hands.Add(1)
	n.rx.wait()
	n.hands.Add(-1)
	do()
	n.serveOn(nil)
}

// steps goes on until nothing is ready, or a thread in an operation takes over, or the baton.
func (n *Net) steps(own *Fabric) {
	for n.step() && n.takers.Load() == 0 && n.hands.Load() == 0 {
		n.ring(own)
	}
}

// arm makes events wake the background, or not, as takers says. What is ready already wakes it at once.
func (n *Net) arm() {
	if n.fired.Load() {
		n.fired.Store(false)
		n.armed = false
	}
	on, set := n.takers.Load() == 0, n.set.Load()
	if on == n.armed || set == nil {
		return
	}
	events := uint32(unix.EPOLLONESHOT)
	if on {
		events |= unix.EPOLLIN
	}
	if epollCtl(set.watch, unix.EPOLL_CTL_MOD, set.ep, events, set.id) == nil {
		n.armed = on
	}
}

// step serves each connection that is ready once, and reports whether anything moved.
func (n *Net) step() (moved bool) {
	if n.dying.Load() {
		n.bury()
	}
	n.left, n.more = n.more, n.left[:0]
	for _, c := range n.left {
		c.recv.more = false
		moved = n.read(c) || moved
	}
	ready := 0
	if set := n.set.Load(); set != nil {
		ready = epollReady(set.ep, n.events[:])
	}
	for i := range n.events[:ready] {
		moved = n.event(&n.events[i]) || moved
	}
	return moved
}

func (n *Net) event(e *unix.EpollEvent) (moved bool) {
	c := (*n.conns.Load())[e.Fd]
	if c == nil {
		return false // it could not be added
	}
	if e.Events&unix.EPOLLOUT != 0 {
		c.blocked.Store(false)
		moved = c.link.flush()
		if f := c.whose.Load(); moved && f != nil {
			n.stir(f)
		}
	} else if e.Events&unix.EPOLLERR != 0 && c.zero != nil {
		moved = c.link.flush() // the kernel has done with a buffer
	}
	if e.Events&(unix.EPOLLRDHUP|unix.EPOLLHUP) != 0 || e.Events&unix.EPOLLERR != 0 && c.zero == nil {
		c.recv.hup = true
	}
	if e.Events&^unix.EPOLLOUT != 0 && !c.recv.more {
		moved = n.read(c) || moved
	}
	return moved
}

// read lets c read its quantum.
func (n *Net) read(c *conn) bool {
	moved, drained := c.read()
	if !drained {
		n.goOn(c)
	}
	return moved
}

// goOn has c read again, as no event would say that it may. A connection stands in more once: step empties it first.
func (n *Net) goOn(c *conn) {
	if !c.recv.more {
		c.recv.more = true
		n.more = append(n.more, c)
	}
}
