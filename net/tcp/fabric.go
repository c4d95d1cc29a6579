// Package tcp carries the ports of one communicator over TCP, by one connection or several for each pair of ranks.
//
// What it is: framing, flows with bounded slots, staging memory, and the reading and writing of sockets, in four layers:
//
//	port (port_out.go, port_in.go)     proto.Out and proto.In of a (kind, channel)
//	flow (flow.go)                     numbered slices, at most slots of them between a writer and its reader
//	peer (peer.go, peer_send.go)       what waits for another rank, and which rail takes it
//	conn (conn_send.go, conn_recv.go)  a rail: frames in and out of one socket, large slices without a copy (zerocopy.go)
//
// Data moves like this: Reserve borrows staging, the caller fills it, Commit queues the slice and sends what the socket takes at
// once. What it does not take is sent when the socket has room again. At the other end the bytes are read straight into staging,
// a whole slice is put into its flow's ring, Peek shows it and Release gives its slot back to the writer.
//
// Rails: any rail takes any slice, and the reader puts them into order, so that each carries as much as it is fast. A slice is kept
// until its reader has released it; if its rail fails, or stands still while another moves (tend.go), others take it again.
//
// Who reads: one background goroutine of the process, woken by the runtime's poller, reads for every Fabric and calls wake. A
// thread that waits in an operation may read itself: Take, any number of Poll, Give. That saves two thread switches a message (8 B
// one way over loopback: 5 us, against 10 by the background); between Take and Give the background leaves the sockets alone. A Poll
// that finds nothing costs 0.3 us, whatever the number of peers, and Take with Give 1.5 us: before each sleep, but not after each
// operation, behind which a Rest costs nothing (rest.go).
//
// What it is not: it meets nobody and proves nothing (descriptors come connected and authenticated), it gives up on nobody (only
// core does), and it does not know operations beyond the Tag that both ends of a port must agree on.
//
// Threads: the ports of a Fabric, Poll, Take, Give and Rest belong to the one thread that drives the communicator at that moment;
// Control and Close may be called from any thread.
package tcp

import (
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/net/staging"
	"hccl.dev/hccl/proto"
)

// Fabric is one rank's connections to the other ranks of a communicator. It implements proto.Ports.
type Fabric struct {
	reading
	resting
	me, n        int
	wake         func()
	onControl    func(rank int, b []byte)
	onGone       func(rank int, err error)
	onBackground func()
	onRail       func(rank, rail int, err error)
	peers        []*peer // by rank; the own one is never connected
	self         flowTable[inFlow]
	closed       atomic.Bool

	tending sync.Mutex // guards the pulses of all rails

	mu     sync.Mutex            // guards adding connections and opening ports
	outs   []interface{ drop() } // ports that may hold staging; guarded by mu
	graves []*conn               // dead rails whose place another has taken; guarded by mu
	conns  int                   // connections that were added; guarded by mu

	options Options // guarded by mu
}

var _ proto.Ports = (*Fabric)(nil)

// New makes the fabric of rank me of n. wake is called, from the background or from within Add, after something came that a waiting
// thread may want to look at: slices, room to write, a control message, the end of a peer. It must not block.
func New(me, n int, wake func()) *Fabric {
	f := &Fabric{me: me, n: n, wake: wake, peers: make([]*peer, n)}
	for r := range f.peers {
		f.peers[r] = &peer{f: f, rank: r, lead: MaxRails}
	}
	f.more = make([]*conn, 0, n)
	staging.Shared.Join() // until free
	return f
}

// OnControl sets who is told of control messages. b is valid during the call only. Set it before the first Add; it is called
// from the background or from within Poll and Give, must not block and must not call Close. Close ends the calls.
func (f *Fabric) OnControl(told func(rank int, b []byte)) { f.onControl = told }

// OnGone sets who is told, once for each rank, that a connection ended. err is a *GoneError or a *FrameError; a rank that left in
// order said goodbye (Orderly). Slices that arrived before can still be read. The same rules as for OnControl.
func (f *Fabric) OnGone(told func(rank int, err error)) { f.onGone = told }

// OnBackground sets what is called on the thread of the background each time before it reads for this fabric. Set it before the first
// Add.
func (f *Fabric) OnBackground(begins func()) { f.onBackground = begins }

// OnRail sets who is told that a rail failed which was not the last one to its rank. The same rules as for OnControl.
func (f *Fabric) OnRail(told func(rank, rail int, err error)) { f.onRail = told }

// Tune sets the options of connections that are added later.
func (f *Fabric) Tune(o Options) {
	f.mu.Lock()
	f.options = o
	f.mu.Unlock()
}

// Add gives the fabric a connection to rank as its rail 0, see AddRail.
func (f *Fabric) Add(rank int, fd int) error { return f.AddRail(rank, 0, fd) }

// AddRail gives the fabric a connection to rank: a connected stream socket whose other end is authenticated and calls it by the same
// number, below MaxRails. It takes the place of a rail of that number which failed; one that has not failed yet does so now, unless it
// is the only one. The descriptor belongs to the fabric from here on, also when AddRail fails. Ports to a rank may be opened and
// written before its first rail is there: their slices then wait for it.
func (f *Fabric) AddRail(rank, rail, fd int) error {
	keepFD(fd)
	if err := f.add(rank, rail, fd); err != nil {
		closeFD(fd)
		return fmt.Errorf("connection to rank %d: %w", rank, err)
	}
	f.peers[rank].flush()
	f.serve(f.wake)
	return nil
}

func (f *Fabric) add(rank, rail, fd int) error {
	if rank < 0 || rank >= f.n || rank == f.me || rail < 0 || rail >= MaxRails {
		return fmt.Errorf("rank %d of %d has no such peer, or no rail %d", f.me, f.n, rail)
	}
	p := f.peers[rank]
	if old := p.rails[rail].Load(); old != nil {
		if p.live()&^(1<<rail) == 0 && old.state.Load() == railLive || p.lost() != nil {
			return errTwice
		}
		old.fail(&GoneError{Rank: rank, Cause: errReplaced})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed.Load() {
		return errClosed
	}
	set, err := f.epoll()
	if err != nil {
		return err
	}
	c, err := newConn(f, p, uint8(rail), fd)
	if err != nil {
		return err
	}
	f.options.apply(c.fd)
	shaping.add(c, f.options.Rate)
	if p.live() != 0 {
		c.share()
	}
	c.zero = newZeroCopy(fd, f.options.ZeroCopy)
	old := p.rails[rail].Swap(c) // before its first event
	if err := epollCtl(set.ep, unix.EPOLL_CTL_ADD, fd, socketEvents, int32(rank*MaxRails+rail)); err != nil {
		p.rails[rail].Store(old)
		shaping.remove(c)
		return sysErr("epoll_ctl", err)
	}
	if old != nil {
		f.graves = append(f.graves, old)
	}
	if f.conns++; f.conns == 1 {
		f.sole.Store(c)
	} else {
		f.sole.Store(nil)
	}
	return nil
}

// epoll returns the fabric's set and makes it at first. f.mu is held.
func (f *Fabric) epoll() (*epollSet, error) {
	if set := f.set.Load(); set != nil {
		return set, nil
	}
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, sysErr("epoll_create1", err)
	}
	keepFD(ep)
	set, err := background.add(f, ep)
	if err != nil {
		closeFD(ep)
		return nil, err
	}
	f.set.Store(set)
	return set, nil
}

// Omit takes rank out of the readers of this rank's ports to all: it reads them by other means. Before the first Out.
func (f *Fabric) Omit(rank int) { f.peers[rank].omit = true }

// Control sends a small message (at most MaxControl bytes) to rank, ahead of all slices that are not on their way yet: at most one
// batch of them, about one slice, and what the kernel holds for a peer that does not read, is in front of it. b is copied. The
// error is a *GoneError when the rank is gone.
func (f *Fabric) Control(rank int, b []byte) error {
	if rank < 0 || rank >= f.n || rank == f.me {
		return fmt.Errorf("control message to rank %d: rank %d of %d has no such peer", rank, f.me, f.n)
	}
	if len(b) > MaxControl {
		return fmt.Errorf("control message of %d bytes, at most %d may be", len(b), MaxControl)
	}
	if err := f.peers[rank].control(b); err != nil {
		return err
	}
	f.peers[rank].flush()
	return nil
}

// Out opens the writing end of a port. Pair and Msg to the own rank are ports in memory.
func (f *Fabric) Out(kind proto.Kind, channel, peer int) (proto.Out, error) {
	if kind == proto.All {
		peer = f.me // not used, not checked
	}
	if err := f.check(kind, channel, peer); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if kind != proto.All && peer == f.me {
		o := &selfOut{flow: f.self.open(kind, channel), rank: f.me}
		f.outs = append(f.outs, o)
		return o, nil
	}
	o := &outPort{kind: kind, channel: channel}
	for r, p := range f.peers {
		if r == peer && kind != proto.All || r != f.me && kind == proto.All && !p.omit {
			o.to = append(o.to, reader{p, p.out.open(kind, channel)})
		}
	}
	f.outs = append(f.outs, o)
	return o, nil
}

// In opens the reading end of the port that peer writes.
func (f *Fabric) In(kind proto.Kind, channel, peer int) (proto.In, error) {
	if err := f.check(kind, channel, peer); err != nil {
		return nil, err
	}
	if peer != f.me {
		p := f.peers[peer]
		return &inPort{peer: p, flow: p.in.open(kind, channel), kind: kind, channel: channel}, nil
	}
	if kind == proto.All {
		return nil, fmt.Errorf("rank %d does not read its own port to all", f.me)
	}
	return &inPort{flow: f.self.open(kind, channel), kind: kind, channel: channel}, nil
}

func (f *Fabric) check(kind proto.Kind, channel, peer int) error {
	switch {
	case f.closed.Load():
		return errClosed
	case kind > proto.Msg:
		return fmt.Errorf("there is no kind %d of ports", kind)
	case channel < 0 || channel >= MaxChannels:
		return fmt.Errorf("channel %d, there are %d", channel, MaxChannels)
	case peer < 0 || peer >= f.n:
		return fmt.Errorf("port to rank %d of %d", peer, f.n)
	}
	return nil
}
