package tcp

import (
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// conn is one socket: frames out of a peer's queues, frames into its flows.
//
// The tx baton guards what is sent: whoever commits sends. The rx baton of the fabric guards what is read: one thread reads for
// all connections. The descriptor is closed only by Fabric.Close, after both batons; until then a failed socket is shut down, so
// that no number is used again while a thread may still hold it.
type conn struct {
	f    *Fabric
	peer *peer
	fd   int
	tx   baton
	said atomic.Bool // the goodbye is in the socket
	send sender
	recv receiver
}

// newConn takes over fd. An error names the step that failed.
func newConn(f *Fabric, p *peer, fd int) (*conn, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("rank %d: cannot make the socket non-blocking: %w", p.rank, err)
	}
	unix.CloseOnExec(fd)
	// Latency only, and not an option of unix sockets: a failure is no fault.
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	return &conn{f: f, peer: p, fd: fd}, nil
}

// fail ends the connection: the peer is gone, its writers and readers hear why.
func (c *conn) fail(err error) {
	c.lose(err)
	_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	c.flush() // frees what waits to be sent
}

// lose marks the peer as gone, for the first reason given, and tells core.
func (c *conn) lose(err error) {
	if c.peer.gone.CompareAndSwap(nil, &goneReason{err}) && c.f.onGone != nil && !c.f.closed.Load() {
		c.f.onGone(c.peer.rank, err)
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
