package tcp

import (
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Net is a process's sockets to other processes, which all its communicators share, and who reads them.
type Net struct {
	reading
	resting
	onBackground func()

	tending sync.Mutex // guards the pulses of all rails

	largeFirst atomic.Bool // of Options

	mu    sync.Mutex              // guards making and ending links and connections
	links []*Link                 // guarded by mu
	conns atomic.Pointer[[]*conn] // by the number that their events carry; nil: a free number. Replaced as a whole under mu
	opts  Options                 // guarded by mu
}

// NewNet makes one without links.
func NewNet() *Net {
	n := &Net{}
	n.conns.Store(&[]*conn{})
	return n
}

// OnBackground sets what is called on the thread of the background each time before it reads. Set it before the first rail.
func (n *Net) OnBackground(begins func()) { n.onBackground = begins }

// Tune sets the options of connections that are added later, and at once the order of slices.
func (n *Net) Tune(o Options) {
	n.largeFirst.Store(o.LargeFirst)
	n.mu.Lock()
	n.opts = o
	n.mu.Unlock()
}

// epoll returns the set of all sockets and makes it for the first one. n.mu is held.
func (n *Net) epoll() (*epollSet, error) {
	if set := n.set.Load(); set != nil {
		return set, nil
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, sysErr("epoll_create1", err)
	}
	keepFD(ep)
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		closeFD(ep)
		return nil, sysErr("eventfd", err)
	}
	keepFD(bell)
	set, err := background.add(n, ep)
	if err != nil {
		closeFD(ep)
		closeFD(bell)
		return nil, err
	}
	set.bell = bell
	n.set.Store(set)
	return set, nil
}

// enrol gives c a number and has its events reported. n.mu is held.
func (n *Net) enrol(c *conn) error {
	set, err := n.epoll()
	if err != nil {
		return err
	}
	list := slices.Clone(*n.conns.Load())
	at := slices.Index(list, nil)
	if at < 0 {
		at, list = len(list), append(list, nil)
	}
	list[at] = c
	c.number = int32(at)
	n.know(list) // before its first event
	if err := epollCtl(set.ep, unix.EPOLL_CTL_ADD, c.fd, socketEvents, c.number); err != nil {
		n.strike(c)
		return sysErr("epoll_ctl", err)
	}
	return nil
}

// strike takes c's number back. n.mu is held.
func (n *Net) strike(c *conn) {
	list := slices.Clone(*n.conns.Load())
	list[c.number] = nil
	n.know(list)
}

// know replaces the list of connections.
func (n *Net) know(list []*conn) {
	var some []*conn
	for _, c := range list {
		if c != nil {
			some = append(some, c)
		}
	}
	n.conns.Store(&list)
	n.sole.Store(nil)
	if len(some) == 1 {
		n.sole.Store(some[0])
	}
}

// release frees what the sockets needed once there is no link any more. n.mu and the rx baton are held.
func (n *Net) release() {
	set := n.set.Load()
	if len(n.links) > 0 || set == nil {
		return
	}
	n.set.Store(nil)
	n.armed = false
	background.remove(set.id, set.ep)
	closeFD(set.ep)
	closeFD(set.bell)
}
