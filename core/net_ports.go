package core

import (
	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/shm"
)

// mixedPorts are the ports of a rank some of whose peers are on its host and some are not: shared memory to those, TCP to these.
// Only a port that all ranks read has ends on both; the writer fills the one in shared memory, and its slice is copied for the other.
type mixedPorts struct {
	near  *shm.Segment
	far   *tcp.Fabric
	queue device.Queue
}

var _ proto.Ports = (*mixedPorts)(nil)

// newMixedPorts makes the near ranks no readers of far's ports to all.
func newMixedPorts(near *shm.Segment, far *tcp.Fabric, queue device.Queue) *mixedPorts {
	for i := range near.Size() {
		far.Omit(near.Rank(i))
	}
	return &mixedPorts{near, far, queue}
}

func (p *mixedPorts) of(peer int) proto.Ports {
	if p.near.Index(peer) >= 0 {
		return p.near.Ports()
	}
	return p.far
}

// Out opens the writing end of a port.
func (p *mixedPorts) Out(kind proto.Kind, channel, peer int) (proto.Out, error) {
	if kind != proto.All {
		return p.of(peer).Out(kind, channel, peer)
	}
	near, err := p.near.Ports().Out(kind, channel, peer)
	if err != nil {
		return nil, err
	}
	far, err := p.far.Out(kind, channel, peer)
	if err != nil {
		return nil, err
	}
	o := &mixedOut{near: near, far: far, queue: p.queue}
	o.cmd[0] = device.Cmd{Op: device.Copy, SrcType: coll.Uint8, Acc: coll.Uint8, DstType: coll.Uint8, NSrc: 1, NDst: 1, Scaled: -1}
	return o, nil
}

// In opens the reading end of the port that peer writes.
func (p *mixedPorts) In(kind proto.Kind, channel, peer int) (proto.In, error) {
	return p.of(peer).In(kind, channel, peer)
}

// Rest says that the operation is over, see shm.Ports.
func (p *mixedPorts) Rest() { p.near.Ports().Rest() }

// mixedOut is the writing end of a port to all.
type mixedOut struct {
	near, far proto.Out
	queue     device.Queue
	size      uint64     // bytes that are reserved
	room      device.Ptr // near, 0: none is reserved
	copy      device.Ptr // far
	fault     error      // of a copy
	cmd       [1]device.Cmd
}

// Begin names the operation of the slices to come.
func (o *mixedOut) Begin(t proto.Tag, slots int) {
	o.near.Begin(t, slots)
	o.far.Begin(t, slots)
	o.room = 0
}

// Reserve waits, by saying "not now", for the readers of both ends. What one end has given is kept until the other gives too.
func (o *mixedOut) Reserve(n uint64, like device.Ptr) (p device.Ptr, err error) {
	if o.fault != nil {
		return 0, o.fault
	}
	if o.room == 0 || o.size < n {
		o.size = n
		if o.room, err = o.near.Reserve(n, like); o.room == 0 || err != nil {
			return 0, err
		}
	}
	if o.copy, err = o.far.Reserve(n, 0); o.copy == 0 || err != nil {
		return 0, err
	}
	return o.room, nil
}

// Commit copies the slice and hands it over. On host memory a copy is done when Submit returns; a queue that works beside this thread
// would need a fence here before far is told.
func (o *mixedOut) Commit(n uint64) {
	if n > 0 {
		o.cmd[0].N, o.cmd[0].Dst[0], o.cmd[0].Src[0] = n, o.copy, o.room
		if _, err := o.queue.Submit(o.cmd[:]); err != nil {
			o.fault = err // the next Reserve says so
		}
	}
	o.room = 0
	o.near.Commit(n)
	o.far.Commit(n)
}

// Blocker is the rank whose reading is waited for.
func (o *mixedOut) Blocker() int {
	if r := o.near.Blocker(); r >= 0 {
		return r
	}
	return o.far.Blocker()
}
