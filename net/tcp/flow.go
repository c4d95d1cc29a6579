package tcp

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"hccl.dev/hccl/net/staging"
	"hccl.dev/hccl/proto"
)

// A flow is the slices of one (kind, channel) from one rank to another, numbered from 0. Each of its counters has one writer and
// only grows; a ring entry belongs to whoever's turn the counters say it is.
//
//	writer:  freed <= acked <= taken <= committed <= freed+slots     taken..committed wait to be sent
//	reader:  released <= arrived <= released+slots                   released..arrived wait to be read
//
// acked follows the reader's released: each frame of the opposite flow carries it, and a frame of its own does when half of the
// slots are released and nothing else said so. Thus neither end stores more than slots slices of a flow, and a writer whose reader
// has released everything always has more than half of its slots. Fewer may be used (Fabric.Use), alike at both ends.
//
// A slice stays with its writer until it is acked: should the rail that took it fail, another one takes it again. The reader keeps
// the first of two that arrive, whole and in staging of its own, so that what an old rail still brings can harm nobody.
type outFlow struct {
	committed atomic.Uint64 // written by the thread that drives the port
	taken     atomic.Uint64 // written by the holder of the peer's tx baton
	acked     atomic.Uint64 // written by the holder of the fabric's rx baton
	freed     atomic.Uint64 // written by the holder of the peer's tx baton
	again     atomic.Uint64 // bit seq%slots: taken, and to be taken again; written by the holder of the peer's tx baton
	ring      [slots]sent
}

type inFlow struct {
	arrived  atomic.Uint64 // written by the holder of the fabric's rx baton
	released atomic.Uint64 // written by the thread that drives the port
	told     atomic.Uint64 // released, as last told to the writer; written by the holder of the tx baton
	early    uint64        // bit seq%slots: there, and not yet arrived for want of one before; guarded by the fabric's rx baton
	ring     [slots]slice
}

// slice is n bytes in b.
type slice struct {
	b   *staging.Buf
	n   uint32
	tag proto.Tag
}

// sent is a slice and the rail that took it last.
type sent struct {
	slice
	rail uint8
}

// full reports whether the next slice must wait for the reader, of whose slots so many are used.
func (f *outFlow) full(used uint64) bool { return f.committed.Load()-f.freed.Load() >= used }

// waiting is about how many bytes are to be taken, for the first time or again: slices of a flow are mostly of one size. The holder of
// the peer's tx baton calls it.
func (f *outFlow) waiting() uint64 {
	taken, again := f.taken.Load(), f.again.Load()
	if committed := f.committed.Load(); committed > taken {
		return (committed - taken + uint64(bits.OnesCount64(again))) * uint64(f.ring[taken%slots].n)
	}
	if again == 0 {
		return 0
	}
	return uint64(bits.OnesCount64(again)) * uint64(f.ring[bits.TrailingZeros64(again)].n)
}

// idle reports whether every committed slice was taken for sending.
func (f *outFlow) idle() bool { return f.again.Load() == 0 && f.committed.Load() == f.taken.Load() }

// push commits s; the flow is not full. The store of committed publishes the entry.
func (f *outFlow) push(s slice) {
	n := f.committed.Load()
	f.ring[n%slots].slice = s
	f.committed.Store(n + 1)
}

// take hands out the next slice to send, those to be sent again first, with an owner more of its memory; ok is false when there is
// none.
func (f *outFlow) take(rail uint8) (s slice, seq uint64, ok bool) {
	seq = f.taken.Load()
	bits := f.again.Load()
	switch {
	case bits != 0:
		for seq = f.freed.Load(); bits>>(seq%slots)&1 == 0; seq++ {
		}
		f.again.Store(bits &^ (1 << (seq % slots)))
	case seq == f.committed.Load():
		return slice{}, 0, false
	default:
		f.taken.Store(seq + 1)
	}
	e := &f.ring[seq%slots]
	e.rail = rail
	e.b.Share(1)
	return e.slice, seq, true
}

// retake marks what a rail took and is not acked to be taken again, and reports whether there is any.
func (f *outFlow) retake(rail uint8) bool {
	bits := f.again.Load()
	for seq := f.acked.Load(); seq < f.taken.Load(); seq++ {
		if f.ring[seq%slots].rail == rail {
			bits |= 1 << (seq % slots)
		}
	}
	f.again.Store(bits)
	return bits != 0
}

// ack stores how far the reader is, and returns what is wrong with the number, "" if nothing is. An older number came by another rail.
func (f *outFlow) ack(n uint64) string {
	if taken := f.taken.Load(); n > taken {
		return fmt.Sprintf("%d slices released, with %d sent", n, taken)
	}
	if n > f.acked.Load() {
		f.acked.Store(n)
	}
	return ""
}

// reap frees what is acked. Called by the holder of the peer's tx baton: nobody takes a slice meanwhile.
func (f *outFlow) reap() {
	for n, to := f.freed.Load(), f.acked.Load(); n < to; n++ {
		e := &f.ring[n%slots]
		b := e.b
		e.b = nil
		f.again.And(^(uint64(1) << (n % slots)))
		b.Put()
		f.freed.Store(n + 1)
	}
}

// room says what is wrong with a slice numbered seq, "" if the writer had a slot for it. had: it is here already.
func (f *inFlow) room(seq uint64) (had bool, bad string) {
	arrived := f.arrived.Load()
	switch {
	case seq < arrived:
		return true, ""
	case seq-f.released.Load() >= slots:
		return false, fmt.Sprintf("slice %d without a free slot", seq)
	}
	return f.early>>(seq%slots)&1 != 0, ""
}

// full reports whether no slot is free.
func (f *inFlow) full() bool { return f.arrived.Load()-f.released.Load() >= slots }

// deliver puts slice seq into its place, and drops it where another rail was faster. The store of arrived publishes what is whole.
func (f *inFlow) deliver(seq uint64, s slice) {
	if had, bad := f.room(seq); had || bad != "" {
		s.b.Put()
		return
	}
	f.ring[seq%slots] = s
	f.early |= 1 << (seq % slots)
	n := f.arrived.Load()
	for ; f.early>>(n%slots)&1 != 0; n++ {
		f.early &^= 1 << (n % slots)
	}
	f.arrived.Store(n)
}

// push delivers the next slice; the flow is not full.
func (f *inFlow) push(s slice) { f.deliver(f.arrived.Load(), s) }

// head is the next slice to read, nil if there is none.
func (f *inFlow) head() *slice {
	n := f.released.Load()
	if n == f.arrived.Load() {
		return nil
	}
	return &f.ring[n%slots]
}

// release ends the use of the slice at the head and reports whether the writer, who uses so many slots, should be told by a frame of
// its own.
func (f *inFlow) release(used uint64) bool {
	n := f.released.Load()
	e := &f.ring[n%slots]
	b := e.b
	e.b = nil
	f.released.Store(n + 1)
	b.Put()
	return n+1-f.told.Load() >= used/2
}

// drop frees what nobody will send or read any more. No other thread uses the flow then.
func (f *outFlow) drop() {
	f.again.Store(0)
	for n := f.freed.Load(); n < f.committed.Load(); n++ {
		e := &f.ring[n%slots]
		e.b.Put()
		e.b = nil
		f.freed.Store(n + 1)
	}
	f.taken.Store(f.committed.Load())
}

func (f *inFlow) drop() {
	for f.head() != nil {
		f.release(slots)
	}
	for k := range f.ring {
		if f.early>>k&1 != 0 {
			f.ring[k].b.Put()
		}
	}
	f.early = 0
}
