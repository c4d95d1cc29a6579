package tcp

import (
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// conn is one socket, a rail to a peer: frames out of the peer's queues, frames into its flows.
//
// The peer's tx baton guards what is sent: whoever commits sends. The rx baton of the fabric guards what is read: one thread reads
// for all connections. The descriptor is closed only by who holds both (bury, or Fabric.Close after closing them); until then a
// failed socket is shut down, so that no number is used again while a thread may still hold it.
type conn struct {
	f       *Fabric
	peer    *peer
	fd      int
	rail    uint8
	state   atomic.Int32
	blocked atomic.Bool   // the socket was full; an event says when it is not
	sent    atomic.Uint64 // bytes
	direct  atomic.Uint64 // of those, sent without a copy
	rate    atomic.Uint64 // bytes per second
	said    atomic.Bool   // the goodbye is in the socket
	left    bool          // the peer's goodbye came by this rail; guarded by the rx baton
	closed  bool          // fd is no longer ours; guarded by Fabric.mu
	pulse   pulse         // guarded by Fabric.tending
	zero    *zeroCopy     // nil: all that is sent is copied
	send    sender
	recv    receiver
}

// The states of a rail. Only the tender (tend.go) makes one a suspect and live again.
const (
	railLive    = iota
	railSuspect // stands still while another moves: takes no new slice, and what it has is sent by others as well
	railDead    // failed, or given up: shut down, and closed when nobody uses it
)

// newConn takes over fd. An error names the step that failed.
func newConn(f *Fabric, p *peer, rail uint8, fd int) (*conn, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("rank %d: cannot make the socket non-blocking: %w", p.rank, err)
	}
	unix.CloseOnExec(fd)
	// Latency only, and not an option of unix sockets: a failure is no fault.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	return &conn{f: f, peer: p, rail: rail, fd: fd}, nil
}

// fail ends the rail. Others take over what it had; without others the peer is gone, and its writers and readers hear why.
func (c *conn) fail(err error) {
	if c.state.Swap(railDead) == railDead {
		return
	}
	_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	if c.peer.live() == 0 {
		c.peer.lose(err)
	} else if c.f.onRail != nil && !c.f.closed.Load() {
		c.f.onRail(c.peer.rank, int(c.rail), err)
	}
	c.peer.orphans.Or(1 << c.rail)
	c.f.dying.Store(true)
	c.peer.flush()
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
