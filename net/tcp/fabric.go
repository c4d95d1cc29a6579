// Package tcp carries the ports of communicators over TCP. All communicators of a process share its connections: there are one or
// several for each other process.
//
// What it is: framing, flows with bounded slots, staging memory, and the reading and writing of sockets, in six layers:
//
//	port (port_out.go, port_in.go)     proto.Out and proto.In of a (kind, channel)
//	flow (flow.go)                     numbered slices, at most slots of them between a writer and its reader
//	peer (peer.go)                     another rank of one communicator: the flows both ways, and its control messages
//	party (party.go)                   a rank's peers in one process: what it tells them all goes there once
//	link (link.go, link_send.go)       another process: which peers' frames go next, and by which rail
//	conn (conn_send.go, conn_recv.go)  a rail: frames in and out of one socket, large slices without a copy (zerocopy.go)
//
//	communicator 1   peer ─┐                ┌─ rail 0
//	communicator 2   peer ─┼─ flows ─ link ─┼─ rail 1      ─── the other process
//	communicator 3   peer ─┘                └─ rail 2
//
// Data moves like this: Reserve borrows staging, the caller fills it, Commit queues the slice and sends what the socket takes at
// once. What it does not take is sent when the socket has room again. At the other end the bytes are read straight into staging,
// a whole slice is put into its flow's ring, Peek shows it and Release gives its slot back to the writer.
//
// Rails: any rail takes any slice, and the reader puts them into order, so that each carries as much as it is fast. A slice is kept
// until its reader has released it; if its rail fails, or stands still while another moves (tend.go), others take it again.
// A rail is one socket. Those between the same two interfaces are of one path (limits.go), and are judged together (paths.go).
//
// Who reads: a thread that waits in an operation reads for all, and wakes those for whom something came: Take, any number of Poll,
// Give. That saves two thread switches a message (8 B one way over loopback: 5 us, against 10 by the background). While nobody does,
// one background goroutine of the process reads, woken by the runtime's poller. A Poll that finds nothing costs 0.3 us, whatever the
// number of peers, and Take with Give 1.5 us: before each sleep, but not after each operation, behind which a Rest costs nothing
// (rest.go).
//
// What it is not: it meets nobody and proves nothing (descriptors come connected and authenticated), it gives up on nobody (only
// core does), and it does not know operations beyond the Tag that both ends of a port must agree on.
//
// Threads: the ports of a Fabric, Poll, Take, Give and Rest belong to the one thread that drives the communicator at that moment;
// Control and Close, and all of a Link, may be called from any thread.
package tcp

import (
	"fmt"
	"sync"
	"sync/atomic"

	"hccl.dev/hccl/net/staging"
	"hccl.dev/hccl/proto"
)

// Fabric is one rank's ports to the other ranks of a communicator. It implements proto.Ports.
type Fabric struct {
	net       *Net
	id        uint64
	me, n     int
	used      uint64 // slots of each flow
	wake      func()
	onControl func(rank int, b []byte) (wake bool)
	onGone    func(rank int, err error)
	peers     []*peer  // by rank; the own one is never joined
	parties   []*party // one for each link that ranks were joined to
	self      flowTable[inFlow]
	closed    atomic.Bool
	stance    atomic.Int32 // away, reads or leans
	rung      atomic.Bool  // something came that another thread has read
	stirred   bool         // in Net.stirred; guarded by the rx baton
	ended     bool         // nobody is woken any more; guarded by the rx baton

	ends sync.Mutex            // held while core is told of an end
	mu   sync.Mutex            // guards opening ports
	outs []interface{ drop() } // ports that may hold staging; guarded by mu
}

var _ proto.Ports = (*Fabric)(nil)

// New makes the fabric of rank me of n. id is the communicator's number, the same on all its ranks, and of no other communicator.
// wake is called, from any thread, after something came that a waiting thread may want to look at: slices, room to write, a control
// message that is worth it, the end of a peer. It must not block.
func New(net *Net, id uint64, me, n int, wake func()) *Fabric {
	f := &Fabric{net: net, id: id, me: me, n: n, used: slots, wake: wake, peers: make([]*peer, n)}
	staging.Shared.Join() // until free
	for r := range f.peers {
		f.peers[r] = &peer{f: f, rank: r, there: route(id, me, r), here: route(id, r, me)}
	}
	return f
}

// LeastSlots is the fewest slots that may be used: more than half of them, of which a writer is sure, hold what a plan needs.
const LeastSlots = 2 * proto.MinSlots

// Use has flows use so many slots in place of all, LeastSlots at least. It is to be called before Join, alike by all ranks.
func (f *Fabric) Use(n int) { f.used = uint64(max(LeastSlots, min(n, slots))) }

// OnControl sets who is told of control messages, and says whether the rank's thread is to be woken for one. b is valid during the call
// only. Set it before the first Join; it is called from any thread that reads, must not block and must not call Close. Close ends the
// calls.
func (f *Fabric) OnControl(told func(rank int, b []byte) (wake bool)) { f.onControl = told }

// OnGone sets who is told, once for each rank, that it is gone. err is a *GoneError or a *FrameError; a rank that left in order said
// goodbye (Orderly). Slices that arrived before can still be read. The same rules as for OnControl.
func (f *Fabric) OnGone(told func(rank int, err error)) { f.onGone = told }

// Join has what goes to rank, and comes from it, go by l. Both ends join before either writes; ports may be opened before.
func (f *Fabric) Join(rank int, l *Link) error {
	if rank < 0 || rank >= f.n || rank == f.me {
		return fmt.Errorf("rank %d of %d has no peer %d", f.me, f.n, rank)
	}
	return l.attach(f.peers[rank])
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
	return f.peers[rank].control(b)
}

// ControlAll sends a small message to all ranks that were joined, are there and read.
func (f *Fabric) ControlAll(b []byte) error {
	if len(b) > MaxControl {
		return fmt.Errorf("control message of %d bytes, at most %d may be", len(b), MaxControl)
	}
	for _, p := range f.peers {
		if p.link != nil && p.lost() == nil {
			_ = p.queue(b)
		}
	}
	f.flush()
	return nil
}

// Announce sends a small message to all ranks that were joined, in one frame to each process. Unlike ControlAll it finds nobody who is
// gone. It is for what is told once or twice.
func (f *Fabric) Announce(b []byte) error {
	if len(b) > MaxControl {
		return fmt.Errorf("control message of %d bytes, at most %d may be", len(b), MaxControl)
	}
	for _, t := range f.parties {
		t.says(header{typ: frameAnnounce, length: uint32(len(b))}, b)
	}
	f.flush()
	return nil
}

// flush sends what is queued for all peers.
func (f *Fabric) flush() {
	for _, t := range f.parties {
		t.link.flush()
	}
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

// route is the number under which frames of communicator id from one rank to another travel. Within a communicator no two are equal;
// those of different ones are as good as random.
func route(id uint64, from, to int) uint64 {
	x := uint64(from)<<32 | uint64(uint32(to))
	for _, m := range [2]uint64{0xbf58476d1ce4e5b9, 0x94d049bb133111eb} { // odd: each step can be undone
		x = (x ^ x>>31) * m
	}
	return id ^ x ^ x>>29
}
