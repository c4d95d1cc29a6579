package tcp

import (
	"fmt"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/net/staging"
	"hccl.dev/hccl/proto"
)

// outPort is the writing end of a port: one flow for each reader, and one staging buffer for a slice however many read it.
type outPort struct {
	kind    proto.Kind
	channel int
	tag     proto.Tag
	to      []reader
	held    *staging.Buf // reserved and not committed
}

type reader struct {
	peer *peer
	flow *outFlow
}

// Begin names the operation of the slices to come. There are more slots than any plan needs.
func (o *outPort) Begin(t proto.Tag, _ int) { o.tag = t }

// Reserve waits, by saying "not now", for the slowest reader. Beyond the cap of staging only a port with nothing on its way gets
// memory: it may be what everything else waits for.
func (o *outPort) Reserve(n uint64, _ device.Ptr) (device.Ptr, error) {
	if n > MaxSlice {
		return 0, fmt.Errorf("slice of %d bytes, at most %d may be", n, MaxSlice)
	}
	idle := true
	for i := range o.to {
		r := &o.to[i]
		if err := r.peer.lost(); err != nil {
			return 0, err
		}
		if r.flow.full(r.peer.f.used) {
			return 0, nil
		}
		idle = idle && r.flow.idle()
	}
	return hold(&o.held, n, idle), nil
}

// hold makes *b a buffer for n bytes and returns its address, or 0: not now.
func hold(b **staging.Buf, n uint64, force bool) device.Ptr {
	if *b != nil && uint64(len((*b).Bytes())) < n {
		(*b).Put()
		*b = nil
	}
	if *b == nil {
		*b = staging.Shared.Get(n, force)
	}
	if *b == nil {
		return 0
	}
	return (*b).Addr()
}

// Commit queues the slice for every reader before it sends to the first: the memory is shared, and must not be given back early.
func (o *outPort) Commit(n uint64) {
	s := slice{b: o.held, n: uint32(n), tag: o.tag}
	o.held = nil
	if len(o.to) == 0 {
		s.b.Put()
		return
	}
	s.b.Share(len(o.to) - 1)
	for i := range o.to {
		o.to[i].peer.commit(o.to[i].flow, o.kind, o.channel, s)
	}
	for i := range o.to {
		o.to[i].peer.flush()
	}
}

// Blocker is the first reader without a free slot.
func (o *outPort) Blocker() int {
	for i := range o.to {
		if o.to[i].flow.full(o.to[i].peer.f.used) {
			return o.to[i].peer.rank
		}
	}
	return -1
}

func (o *outPort) drop() {
	if o.held != nil {
		o.held.Put()
		o.held = nil
	}
}

// selfOut is the writing end of a port whose reader is the own rank: it fills the reader's ring.
type selfOut struct {
	flow *inFlow
	rank int
	tag  proto.Tag
	held *staging.Buf
}

// Begin names the operation of the slices to come.
func (o *selfOut) Begin(t proto.Tag, _ int) { o.tag = t }

// Reserve is never short of a reader that another process holds up, so it may always go beyond the cap of staging.
func (o *selfOut) Reserve(n uint64, _ device.Ptr) (device.Ptr, error) {
	if n > MaxSlice {
		return 0, fmt.Errorf("slice of %d bytes, at most %d may be", n, MaxSlice)
	}
	if o.flow.full() {
		return 0, nil
	}
	return hold(&o.held, n, true), nil
}

// Commit hands the slice to the reader.
func (o *selfOut) Commit(n uint64) {
	o.flow.push(slice{b: o.held, n: uint32(n), tag: o.tag})
	o.held = nil
}

// Blocker is the own rank when it has not read.
func (o *selfOut) Blocker() int {
	if o.flow.full() {
		return o.rank
	}
	return -1
}

func (o *selfOut) drop() {
	if o.held != nil {
		o.held.Put()
		o.held = nil
	}
}
