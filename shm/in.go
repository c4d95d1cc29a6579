package shm

import (
	"errors"
	"sync/atomic"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/proto"
)

// in is a reading end of a port: it polls the stamp of one line, and a slice in the writer's arena is read where it lies.
type in struct {
	s      *Segment
	view   view // of the writer's arena
	ring   uintptr
	next   uint64 // slices released
	ack    *atomic.Uint64
	writer int // index in the segment
	tag    proto.Tag
}

// What a peer must not write.
var (
	errStamp  = errors.New("a peer on this host wrote a slice number out of order")
	errBounds = errors.New("a peer on this host sent a slice outside its memory")
)

// Begin opens an operation: slices from here on must carry its tag.
func (i *in) Begin(tag proto.Tag) { i.tag = tag }

// Peek returns the next slice, or 0: not now.
func (i *in) Peek() (device.Ptr, uint64, error) {
	d := sliceAt(i.ring + uintptr(i.next&(ringLen-1))*lineSize)
	stamp := d.stamp.Load() // acquire: the rest of the line, and the slice, are older
	if stamp != i.next+1 {
		if stamp != 0 && stamp+ringLen != i.next+1 {
			return 0, 0, errStamp
		}
		return 0, 0, nil
	}
	if d.seq != i.tag.Seq || d.hash != i.tag.Hash || d.lane != i.tag.Lane {
		return 0, 0, proto.ErrTag
	}
	off, n := d.off, d.len // read once: the writer cannot change them after the check
	if n > i.view.size || off > i.view.size-n {
		return 0, 0, errBounds
	}
	return device.Ptr(i.view.base + uintptr(off)), n, nil
}

// Release gives the slice's room back. The store is a full fence: see Commit.
func (i *in) Release() {
	i.next++
	i.ack.Store(i.next)
	if v := word64(i.s.block(i.writer) + blockBells).Load(); v != 0 {
		i.s.strike(i.writer, v)
	}
}

// view is a peer's arena as mapped here.
type view struct {
	base uintptr
	size uint64
}
