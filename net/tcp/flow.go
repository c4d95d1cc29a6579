package tcp

import (
	"fmt"
	"sync/atomic"

	"hccl.dev/hccl/proto"
)

// A flow is the slices of one (kind, channel) from one rank to another, numbered from 0. Each of its counters has one writer and
// only grows; a ring entry belongs to whoever's turn the counters say it is.
//
//	writer:  acked <= taken <= committed <= acked+slots     taken..committed wait to be sent
//	reader:  released <= arrived <= released+slots          released..arrived wait to be read
//
// acked follows the reader's released: each frame of the opposite flow carries it, and a frame of its own does when half of the
// slots are released and nothing else said so. Thus neither end stores more than slots slices of a flow, and a writer whose reader
// has released everything always has more than half of its slots.
type outFlow struct {
	committed atomic.Uint64 // written by the thread that drives the port
	taken     atomic.Uint64 // written by the holder of the connection's tx baton
	acked     atomic.Uint64 // written by the holder of the fabric's rx baton
	ring      [slots]slice
}

type inFlow struct {
	arrived  atomic.Uint64 // written by the holder of the fabric's rx baton
	released atomic.Uint64 // written by the thread that drives the port
	told     atomic.Uint64 // released, as last told to the writer; written by the holder of the tx baton
	ring     [slots]slice
}

// slice is one ring entry: n bytes in b.
type slice struct {
	b   *buf
	n   uint32
	tag proto.Tag
}

// full reports whether the next slice must wait for the reader.
func (f *outFlow) full() bool { return f.committed.Load()-f.acked.Load() >= slots }

// idle reports whether every committed slice was taken for sending.
func (f *outFlow) idle() bool { return f.committed.Load() == f.taken.Load() }

// push commits s; the flow is not full. The store of committed publishes the entry.
func (f *outFlow) push(s slice) {
	n := f.committed.Load()
	f.ring[n%slots] = s
	f.committed.Store(n + 1)
}

// take removes the next slice to send; ok is false when there is none.
func (f *outFlow) take() (s slice, seq uint64, ok bool) {
	seq = f.taken.Load()
	if seq == f.committed.Load() {
		return slice{}, 0, false
	}
	s = f.ring[seq%slots]
	f.taken.Store(seq + 1)
	return s, seq, true
}

// ack stores how far the reader is, and returns what is wrong with the number, "" if nothing is.
func (f *outFlow) ack(n uint64) string {
	acked, taken := f.acked.Load(), f.taken.Load()
	if n < acked || n > taken {
		return fmt.Sprintf("%d slices released, after %d and with %d sent", n, acked, taken)
	}
	f.acked.Store(n)
	return ""
}

// room says what is wrong with a slice numbered seq, "" if it is the next one and the writer had a slot for it.
func (f *inFlow) room(seq uint64) string {
	switch arrived := f.arrived.Load(); {
	case seq != arrived:
		return fmt.Sprintf("slice %d where %d was due", seq, arrived)
	case f.full():
		return fmt.Sprintf("slice %d without a free slot", seq)
	}
	return ""
}

// full reports whether no slot is free.
func (f *inFlow) full() bool { return f.arrived.Load()-f.released.Load() >= slots }

// push delivers s; room was asked before. The store of arrived publishes the entry.
func (f *inFlow) push(s slice) {
	n := f.arrived.Load()
	f.ring[n%slots] = s
	f.arrived.Store(n + 1)
}

// head is the next slice to read, nil if there is none.
func (f *inFlow) head() *slice {
	n := f.released.Load()
	if n == f.arrived.Load() {
		return nil
	}
	return &f.ring[n%slots]
}

// release ends the use of the slice at the head and reports whether the writer should be told by a frame of its own.
func (f *inFlow) release() bool {
	n := f.released.Load()
	e := &f.ring[n%slots]
	b := e.b
	e.b = nil
	f.released.Store(n + 1)
	staging.put(b)
	return n+1-f.told.Load() >= slots/2
}

// drop frees what nobody will send or read any more. No other thread uses the flow then.
func (f *outFlow) drop() {
	for s, _, ok := f.take(); ok; s, _, ok = f.take() {
		staging.put(s.b)
	}
}

func (f *inFlow) drop() {
	for f.head() != nil {
		f.release()
	}
}

// flowTable finds the flows of one direction between two ranks. Rows come with the first flow of a kind: most peers of a large
// communicator never exchange anything.
type flowTable[F any] struct {
	rows [proto.Msg + 1]atomic.Pointer[[MaxChannels]atomic.Pointer[F]]
}

// find returns nil for a flow that nobody opened or wrote to.
func (t *flowTable[F]) find(kind proto.Kind, channel int) *F {
	row := t.rows[kind].Load()
	if row == nil {
		return nil
	}
	return row[channel].Load()
}

// open makes the flow if it is not there. The opener of a port and the first frame may come at once: the first wins.
func (t *flowTable[F]) open(kind proto.Kind, channel int) *F {
	row := t.rows[kind].Load()
	if row == nil {
		t.rows[kind].CompareAndSwap(nil, new([MaxChannels]atomic.Pointer[F]))
		row = t.rows[kind].Load()
	}
	f := row[channel].Load()
	if f == nil {
		row[channel].CompareAndSwap(nil, new(F))
		f = row[channel].Load()
	}
	return f
}

// each calls do for every flow there is.
func (t *flowTable[F]) each(do func(*F)) {
	for k := range t.rows {
		row := t.rows[k].Load()
		for c := 0; row != nil && c < MaxChannels; c++ {
			if f := row[c].Load(); f != nil {
				do(f)
			}
		}
	}
}
