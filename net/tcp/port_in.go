package tcp

import (
	"hccl.dev/hccl/device"
	"hccl.dev/hccl/proto"
)

// inPort is the reading end of a port.
type inPort struct {
	peer    *peer // who writes; nil: the own rank
	flow    *inFlow
	kind    proto.Kind
	channel int
	tag     proto.Tag
}

// Begin names the operation whose slices are expected.
func (i *inPort) Begin(t proto.Tag) { i.tag = t }

// Peek answers with the end of the writer only after everything that arrived was read: it is looked for first, then the ring.
func (i *inPort) Peek() (device.Ptr, uint64, error) {
	var end error
	s := i.flow.head()
	if s == nil && i.peer != nil {
		end = i.peer.lost()
		s = i.flow.head()
	}
	switch {
	case s == nil:
		return 0, 0, end
	case s.tag != i.tag:
		return 0, 0, proto.ErrTag
	}
	return s.b.Addr(), uint64(s.n), nil
}

// Release gives the slot back. The writer hears of it with the next slice that goes its way, or by a frame once half of the slots
// are free.
func (i *inPort) Release() {
	if i.peer == nil {
		i.flow.release(slots)
	} else if i.flow.release(i.peer.f.used) {
		i.peer.owed[i.kind].Or(1 << i.channel)
		i.peer.list()
		i.peer.flush()
	}
}
