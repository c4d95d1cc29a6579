package shm

import (
	"errors"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/proto"
)

// out is the writing end of a port. Slice k, counted from 0, lies in slot k mod slots of the staging and is described by line
// k mod ringLen of the ring. It may be written once slice k-slots has been read by all.
//
//	ring      [k-2][k-1][ k ][   ] ...   descriptors, stamp last: one line is all that a reader polls
//	readers   | 3 | 5 | 4 |              slices read: min is tail
//	staging   [slot 0][slot 1] ...       a region of the own arena, lent at first use
type out struct {
	ports   *Ports
	s       *Segment
	ring    uintptr
	staging uintptr // address of slot 0; 0: none attached
	head    uint64  // slices committed
	tail    uint64  // slices known to be read by all
	slots   uint64  // a power of two, at most ringLen
	size    uint64  // bytes of a slot
	need    uint64  // slots without which the operation may block itself
	phase   uint64  // where in its first line the reserved slice begins
	tag     proto.Tag
	region  region
	readers []reader

	reserved bool // a slice is being written
	blocker  int  // index into readers of the slowest, -1: all have read all
	waits    bool // the last attach had to wait for readers
}

type reader struct {
	index int // in the segment
	ack   uintptr
}

// errAck is a defect or an attack: a reader says it has read what was not written.
var errAck = errors.New("a peer on this host claims to have read slices that were never sent")

func (o *out) addReader(i int, ack uintptr) { o.readers = append(o.readers, reader{i, ack}) }

// Begin opens an operation: slices from here on carry its tag, and so many of them must fit unread.
func (o *out) Begin(tag proto.Tag, slots int) {
	o.tag, o.need = tag, uint64(slots)
	if !o.ports.busy {
		o.ports.begin()
	}
}

// Reserve returns room for a slice of n bytes, or 0: not now.
func (o *out) Reserve(n uint64, like device.Ptr) (device.Ptr, error) {
	o.phase = uint64(like) & (lineSize - 1)
	if n+o.phase > o.size || o.slots < o.need || o.staging == 0 {
		return o.attach(n + o.phase)
	}
	if o.head-o.tail >= o.slots {
		if err := o.look(); err != nil || o.head-o.tail >= o.slots {
			return 0, err
		}
	}
	return o.room(), nil
}

// room is where the next slice lies, which is written from now on.
func (o *out) room() device.Ptr {
	o.reserved = true
	return device.Ptr(o.staging + uintptr(o.head&(o.slots-1)*o.size+o.phase))
}

// look finds how far the slowest reader is.
func (o *out) look() error {
	low := o.head
	o.blocker = -1
	for k := range o.readers {
		got := word64(o.readers[k].ack).Load()
		if got-o.tail > o.head-o.tail { // behind what it said before, or ahead of us
			return errAck
		}
		if got-o.tail < low-o.tail {
			low, o.blocker = got, k
		}
	}
	o.tail = low
	return nil
}

// Commit publishes the reserved slice: the line first, its stamp last. The stamp's store is a full fence, so either the look at
// the bells sees a reader that is about to sleep, or the reader's last look sees the stamp.
func (o *out) Commit(n uint64) {
	d := sliceAt(o.ring + uintptr(o.head&(ringLen-1))*lineSize)
	d.seq, d.hash, d.lane = o.tag.Seq, o.tag.Hash, o.tag.Lane
	d.off, d.len = o.region.off+o.head&(o.slots-1)*o.size+o.phase, n
	o.head++
	o.reserved = false
	d.stamp.Store(o.head)
	for k := range o.readers {
		i := o.readers[k].index
		if v := word64(o.s.block(i) + blockBells).Load(); v != 0 {
			o.s.strike(i, v)
		}
	}
}

// Blocker is the communicator's rank that the last Reserve waited for, -1 if it waits for nobody.
func (o *out) Blocker() int {
	full := o.waits || o.head-o.tail >= o.slots
	if !full || o.look() != nil || o.blocker < 0 {
		return -1
	}
	return o.s.ranks[o.readers[o.blocker].index]
}

// drained reports whether all slices have been read by every reader that still reads.
func (o *out) drained() bool {
	for k := range o.readers {
		if word64(o.readers[k].ack).Load() != o.head && o.s.reads(o.readers[k].index) {
			return false
		}
	}
	return true
}

// reads reports whether rank i may still read slices: it is live and so is its process.
func (s *Segment) reads(i int) bool { return s.State(i) == Live && s.peers[i].Alive() }

// attach gets staging for slices of n bytes, once nothing lies in the present one. Where the arena has no room for all the slots that a
// port had best have, fewer do, but none below what the operation needs: it would wait for ever.
func (o *out) attach(n uint64) (device.Ptr, error) {
	if err := o.look(); err != nil || o.tail != o.head {
		o.waits = true
		return 0, err
	}
	o.waits = false
	if o.staging != 0 {
		o.s.arena.detach(o)
	}
	size := slotSize(n)
	slots := o.s.arena.slotsFor(size)
	for slots < o.need {
		slots *= 2
	}
	for ; ; slots /= 2 {
		err := o.s.arena.attach(o, slots, size)
		if err == nil {
			return o.room(), nil
		}
		if slots/2 < max(o.need, 1) {
			return 0, err
		}
	}
}

// slotSize is the bytes of a slot for slices of n bytes: a power of two and no less than a page's quarter, so that few sizes occur.
func slotSize(n uint64) uint64 {
	size := uint64(1 << 10)
	for size < n {
		size *= 2
	}
	return size
}

// slotsFor is how many slots a port has. Four let a writer be two slices ahead while one is read and one is on its way; more of
// a large size would only push each other out of the caches, and more in a small arena take room from other ports.
func (a *arena) slotsFor(size uint64) uint64 {
	switch {
	case a.size < 4*softBytes:
	case size <= 4<<10:
		return 16
	case size <= 16<<10:
		return 8
	}
	return 4
}
