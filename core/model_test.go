package core

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto/porttest"
)

// shape is an operation of all ranks, from which each rank's call and the result that it must have are made. Values are small whole
// numbers, so that every type holds every sum exactly, in any order.
type shape struct {
	fn       coll.Func
	typ      coll.DataType
	red      coll.RedOp
	n        int
	count    uint64
	root     int
	inPlace  bool
	seed     uint64
	algo     string
	channels int
	floats   bool // random bytes in place of whole numbers: for runs that are compared with each other
}

func (o *shape) String() string {
	return fmt.Sprintf("%v of %d %v, %v, root %d of %d, in place %v, algorithm %q, %d channels, seed %d", o.fn, o.count, o.typ, o.red, o.root,
		o.n, o.inPlace, o.algo, o.channels, o.seed)
}

// share is what rank a has for rank b in the V forms, in elements.
func (o *shape) share(a, b int) uint64 {
	return (uint64(a)*3 + uint64(b)*5 + o.seed) % (o.count + 1)
}

// extent is a block of a buffer, in elements.
type extent struct{ lo, n uint64 }

func even(n int, count uint64) (list []extent) {
	for k := range n {
		list = append(list, extent{uint64(k) * count, count})
	}
	return list
}

func uneven(n int, share func(k int) uint64) (list []extent) {
	at := uint64(0)
	for k := range n {
		list = append(list, extent{at, share(k)})
		at += share(k)
	}
	return list
}

// blocks are those of the send and the receive buffer of rank r.
func (o *shape) blocks(r int) (send, recv []extent) {
	one, all := even(1, o.count), even(o.n, o.count)
	switch o.fn {
	case coll.AllGather, coll.Gather:
		return one, all
	case coll.ReduceScatter, coll.Scatter:
		return all, one
	case coll.AlltoAll:
		return all, all
	case coll.AllGatherV:
		return even(1, o.share(r, 0)), uneven(o.n, func(k int) uint64 { return o.share(k, 0) })
	case coll.ReduceScatterV:
		return uneven(o.n, func(k int) uint64 { return o.share(k, 0) }), even(1, o.share(r, 0))
	case coll.AlltoAllV:
		return uneven(o.n, func(k int) uint64 { return o.share(r, k) }), uneven(o.n, func(k int) uint64 { return o.share(k, r) })
	}
	return one, one
}

func end(list []extent) uint64 { return list[len(list)-1].lo + list[len(list)-1].n }

// receives reports whether rank r gets a result.
func (o *shape) receives(r int) bool {
	return o.fn != coll.Reduce && o.fn != coll.Gather || r == o.root
}

// given is element i of what rank r contributes in a block.
func (o *shape) given(r, block int, i uint64) int64 {
	x := int64((i*7 + o.seed + uint64(block)*3) % 8)
	switch {
	case !o.fn.Reduces():
		return x + int64(r*16)%100
	case o.red == coll.Prod:
		return 1 + (x+int64(r))%3/2
	case o.red == coll.PreMulSum:
		return 1 + (x+int64(r))%8
	}
	return 9 + x + int64(2*r-(o.n-1)) // the mean of all ranks is 9 + x
}

func factor(r int) int64 { return int64(1 + r%2) }

// reduced is element i of the reduction of a block over all ranks.
func (o *shape) reduced(block int, i uint64) int64 {
	acc := int64(0)
	for r := range o.n {
		v := o.given(r, block, i)
		switch {
		case o.red == coll.PreMulSum:
			acc += v * factor(r)
		case r == 0:
			acc = v
		case o.red == coll.Prod:
			acc *= v
		case o.red == coll.Max:
			acc = max(acc, v)
		case o.red == coll.Min:
			acc = min(acc, v)
		case o.red == coll.And:
			acc &= v
		case o.red == coll.Or:
			acc |= v
		case o.red == coll.Xor:
			acc ^= v
		default:
			acc += v
		}
	}
	if o.red == coll.Avg {
		acc /= int64(o.n)
	}
	return acc
}

// want is element i of a block of rank r's result, by definition.
func (o *shape) want(r, block int, i uint64) int64 {
	switch o.fn {
	case coll.AllReduce, coll.Reduce:
		return o.reduced(0, i)
	case coll.ReduceScatter, coll.ReduceScatterV:
		return o.reduced(r, i)
	case coll.Broadcast:
		return o.given(o.root, 0, i)
	case coll.Scatter:
		return o.given(o.root, r, i)
	case coll.AlltoAll, coll.AlltoAllV:
		return o.given(block, r, i)
	}
	return o.given(block, 0, i)
}

// part is one rank's share of an operation: its memory between guards, and its call.
type part struct {
	o              *shape
	rank           int
	mem, before    []byte
	call           Call
	sendAt, recvAt uint64
}

const guard = 24 // bytes around each buffer, which make it unaligned too

// retained is the memory of the latest parts. A call that was only started knows addresses, which keep nothing alive, and a test that
// has seen its error forgets the part: without this the collector would give memory away that a job still writes to.
var retained struct {
	mu    sync.Mutex
	list  [][]byte // guarded by mu
	bytes int      // guarded by mu
}

const retainBytes = 64 << 20

func retain(b []byte) {
	retained.mu.Lock()
	defer retained.mu.Unlock()
	retained.list = append(retained.list, b)
	retained.bytes += len(b)
	for retained.bytes > retainBytes && len(retained.list) > 1 {
		retained.bytes -= len(retained.list[0])
		retained.list = retained.list[1:]
	}
}

// part lays out the memory of rank r.
func (o *shape) part(r int) *part {
	size := o.typ.Size()
	send, recv := o.blocks(r)
	p := &part{o: o, rank: r, sendAt: guard}
	sendBytes, recvBytes := end(send)*size, end(recv)*size
	p.recvAt = guard + sendBytes + guard
	if o.inPlace {
		p.recvAt = guard
		switch o.fn {
		case coll.AllGather, coll.Gather, coll.AllGatherV:
			p.sendAt += recv[r].lo * size
		case coll.ReduceScatter, coll.Scatter, coll.ReduceScatterV:
			p.recvAt += send[r].lo * size
		}
	}
	p.mem = bytes.Repeat([]byte{0xa5}, int(max(p.sendAt+sendBytes, p.recvAt+recvBytes)+guard))
	rng := rand.New(rand.NewPCG(o.seed, uint64(r)))
	for b, e := range send {
		for i := range e.n {
			if v := o.given(r, b, i); !o.floats {
				o.store(p.mem[p.sendAt:], e.lo+i, v)
			} else {
				porttest.Store(o.typ, p.mem[p.sendAt:], e.lo+i, porttest.Num{F: rng.NormFloat64()})
			}
		}
	}
	retain(p.mem)
	p.before = bytes.Clone(p.mem)
	p.makeCall(send, recv)
	return p
}

func (o *shape) store(b []byte, i uint64, v int64) {
	porttest.Store(o.typ, b, i, porttest.Num{I: v, F: float64(v)})
}

func (p *part) makeCall(send, recv []extent) {
	o := p.o
	p.call = Call{Func: o.fn, Type: o.typ, Red: o.red, Count: o.count, Root: o.root, Algo: o.algo, AlgoForced: false,
		MinChannels: o.channels, MaxChannels: o.channels,
		Send: device.BytesPtr(p.mem[p.sendAt:]), Recv: device.BytesPtr(p.mem[p.recvAt:]),
		Scale: porttest.Bits(o.typ, porttest.Num{I: factor(p.rank), F: float64(factor(p.rank))})}
	counts := func(list []extent) (c, d []uint64) {
		for _, e := range list {
			c, d = append(c, e.n), append(d, e.lo)
		}
		return c, d
	}
	switch o.fn {
	case coll.AllGatherV:
		p.call.RecvCounts, p.call.RecvDispls = counts(recv)
	case coll.ReduceScatterV:
		p.call.RecvCounts, p.call.RecvDispls = counts(send)
	case coll.AlltoAllV:
		p.call.SendCounts, p.call.SendDispls = counts(send)
		p.call.RecvCounts, p.call.RecvDispls = counts(recv)
	}
}

// check compares every byte of the rank's memory with what the operation should have left.
func (p *part) check() error {
	defer runtime.KeepAlive(p.mem)
	want := bytes.Clone(p.before)
	if _, recv := p.o.blocks(p.rank); p.o.receives(p.rank) {
		for b, e := range recv {
			for i := range e.n {
				p.o.store(want[p.recvAt:], e.lo+i, p.o.want(p.rank, b, i))
			}
		}
	}
	if bytes.Equal(want, p.mem) {
		return nil
	}
	at := 0
	for want[at] == p.mem[at] {
		at++
	}
	top := min(at+16, len(want))
	return fmt.Errorf("%v: rank %d differs at byte %d (send at %d, recv at %d of %d): % x, wanted % x", p.o, p.rank, at, p.sendAt, p.recvAt,
		len(want), p.mem[at:top], want[at:top])
}
