package tcp

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/secure"
)

// conn is one socket, a rail to another process: frames out of the link's peers, frames into their flows.
//
// The link's tx baton guards what is sent: whoever commits sends. The rx baton guards what is read: one thread reads for all
// connections. The descriptor is closed only by who holds both (bury, or Link.Close after closing them); until then a failed socket is
// shut down, so that no number is used again while a thread may still hold it.
type conn struct {
	link    *Link
	fd      int
	number  int32 // of its events
	rail    uint8
	state   atomic.Int32
	blocked atomic.Bool            // the socket was full; an event says when it is not
	put     atomic.Uint64          // bytes of all batches so far
	sent    atomic.Uint64          // bytes of them that the socket took
	got     atomic.Uint64          // bytes that were read
	direct  atomic.Uint64          // bytes that were sent without a copy
	whose   atomic.Pointer[Fabric] // those that it took last
	rate    atomic.Uint64          // bytes per second
	said    atomic.Bool            // the goodbye is in the socket
	mute    atomic.Bool            // the socket has refused what was to be sent
	over    atomic.Bool            // the other end's goodbye and the end of its stream have come
	left    bool                   // the other end's goodbye has come; guarded by the rx baton
	closed  bool                   // fd is no longer ours; guarded by Net.mu
	pulse   pulse                  // guarded by Net.tending
	asking  asking                 // guarded by Net.tending
	zero    *zeroCopy              // nil: all that is sent is copied
	send    sender
	recv    receiver
	seal    *sealing   // nil: in clear; guarded by the link's tx baton
	unseal  *unsealing // the same; guarded by the rx baton
}

// The states of a rail. The tender (tend.go) makes one a suspect and live again.
const (
	railLive    = iota
	railSuspect // stands still while another moves: takes no new slice, and what it has is sent by others as well
	railParting // says goodbye, or has: it takes nothing new, and is read until its end
	railDead    // failed, or given up, or at its end: shut down, and closed when nobody uses it
)

// newConn takes over fd. An error names the step that failed.
func newConn(l *Link, rail uint8, fd int, keys *secure.Session) (*conn, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("cannot make the socket non-blocking: %w", err)
	}
	unix.CloseOnExec(fd)
	// Latency only, and not an option of unix sockets: a failure is no fault.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	c := &conn{link: l, rail: rail, fd: fd, seal: newSealing(keys), unseal: newUnsealing(keys)}
	if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
		c.pulse.acked = info.Bytes_acked // of the handshake: the rail has moved nothing yet
	}
	return c, nil
}

// fail ends the rail. Others take over what it had; without others the other process is gone, and writers to it and readers hear why.
func (c *conn) fail(err error) {
	was := c.state.Swap(railDead)
	if was == railDead {
		return
	}
	l := c.link
	l.orphans.Or(1 << c.rail)
	_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	last := was != railParting && l.live() == 0 && !l.pardon()
	doubts := last && l.doubts(err)
	if last && !doubts {
		l.lose(err)
	} else if l.onRail != nil && l.dead.Load() == nil {
		l.onRail(int(c.rail), err)
	}
	if doubts {
		l.onNeed()
	}
	l.net.dying.Store(true)
	l.flush()
}

// pardon has suspects used again where no other rail is left, and reports whether there are any. Where paths come and go in turn, one end
// hears that the other has given up a rail before the word of it finds a way: that is no sign of an end.
func (l *Link) pardon() (any bool) {
	for k := range l.rails {
		if c := l.rails[k].Load(); c != nil && c.state.CompareAndSwap(railSuspect, railLive) {
			any = true
		}
	}
	return any
}

// upsetTime is how long after a rail was given up the end of the last one says nothing of the process at the other end.
const upsetTime = 10 * time.Second

// doubts reports whether the last connection has ended soon after either end gave up another. When paths come back from an outage one after
// the other the ends may give up different ones, each the other's last. Whether the process has ended shows where it listened.
func (l *Link) doubts(err error) bool {
	at := l.upset.Load()
	_, gone := err.(*GoneError)
	return gone && at != nil && time.Since(*at) <= upsetTime && l.Used()
}

// part has a live rail say goodbye.
func (c *conn) part() {
	if c.state.CompareAndSwap(railLive, railParting) {
		c.link.parting.Or(1 << c.rail)
	}
}

// unacked is how many bytes the peer's host has not taken yet; 0 also where that cannot be known any more.
func (c *conn) unacked() int {
	n, err := unix.IoctlGetInt(c.fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

func sysErr(call string, err error) error { return os.NewSyscallError(call, err) }
