// Package tcp carries the ports of one communicator over TCP, one connection for each pair of ranks.
//
// What it is: framing, flows with bounded slots, staging memory, and the reading and writing of sockets. Three layers, kept apart
// so that a pool of connections and rails can take the place of the lowest one:
//
//	port (port_out.go, port_in.go)  proto.Out and proto.In of a (kind, channel)
//	flow (flow.go, peer.go)         numbered slices, at most slots of them between a writer and its reader
//	conn (conn_send.go, conn_recv.go)  frames in and out of one socket
//
// Data moves like this: Reserve borrows staging, the caller fills it, Commit queues the slice and sends what the socket takes at
// once. What it does not take is sent when the socket has room again. At the other end the bytes are read straight into staging,
// a whole slice is put into its flow's ring, Peek shows it and Release gives its slot back to the writer.
//
// Who reads: one background goroutine of the process, woken by the runtime's poller, reads for every Fabric and calls wake. A
// thread that waits in an operation may read itself: Take, any number of Poll, Give. That saves two thread switches a message;
// between Take and Give the background leaves the sockets alone.
//
// What it is not: it meets nobody and proves nothing (descriptors come connected and authenticated), it gives up on nobody (only
// core does), and it does not know operations beyond the Tag that both ends of a port must agree on.
//
// Threads: the ports of a Fabric, Poll, Take and Give belong to the one thread that drives the communicator at that moment;
// Control and Close may be called from any thread.
package tcp

import (
	"time"

	"hccl.dev/hccl/proto"
)

// Fabric is one rank's connections to the other ranks of a communicator. It implements proto.Ports.
type Fabric struct {
	me, n int
	wake  func()
}

// New makes the fabric of rank me of n. wake is called, from a background goroutine, after something came that a waiting thread
// may want to look at: slices, room to write, a control message, the end of a peer. It must not block.
func New(me, n int, wake func()) *Fabric { return &Fabric{me: me, n: n, wake: wake} }

// OnControl sets who is told of control messages. b is valid during the call only. Set it before the first Add; it is called
// from the background or from within Poll, must not block and must not call Close.
func (f *Fabric) OnControl(func(rank int, b []byte)) {}

// OnGone sets who is told, once for each rank, that a connection ended. err is a *GoneError or a *FrameError; a rank that left in
// order said goodbye (Orderly). Slices that arrived before can still be read. The same rules as for OnControl.
func (f *Fabric) OnGone(func(rank int, err error)) {}

// Add gives the fabric its connection to rank: a connected stream socket whose other end is authenticated. The descriptor belongs
// to the fabric from here on, also when Add fails. Ports to a rank may be opened before its connection is there; until then they
// say "not now".
func (f *Fabric) Add(rank int, fd int) error { return errClosed }

// Control sends a small message (at most MaxControl bytes) to rank, ahead of all slices that are not on their way yet: at most one
// slice is in front of it. b is copied. The error is a *GoneError when the rank is gone.
func (f *Fabric) Control(rank int, b []byte) error { return errClosed }

// Out opens the writing end of a port. Pair and Msg to the own rank are ports in memory.
func (f *Fabric) Out(kind proto.Kind, channel, peer int) (proto.Out, error) { return nil, errClosed }

// In opens the reading end of the port that peer writes.
func (f *Fabric) In(kind proto.Kind, channel, peer int) (proto.In, error) { return nil, errClosed }

// Take tells the background that the calling thread reads the sockets itself, by Poll, until Give.
func (f *Fabric) Take() {}

// Poll reads and writes what the sockets have ready, at most about one large slice of each connection, and reports whether
// anything moved. It never blocks, and does not call wake.
func (f *Fabric) Poll() bool { return false }

// Give hands the sockets back to the background; a thread does so before it sleeps and when its operation is over. What has
// arrived by then is in the ports: look at them once more before sleeping.
func (f *Fabric) Give() {}

// Close says goodbye to every peer behind what was committed, waits at most drain until the peers' hosts have taken all of it, and
// frees everything. Ports must not be used during and after it; Control then fails. It is safe to call twice.
func (f *Fabric) Close(drain time.Duration) {}
