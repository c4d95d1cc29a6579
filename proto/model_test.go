package proto_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/porttest"
)

// call is one operation of all ranks: what they are given, and the memory in which it happens.
type call struct {
	key     proto.Key
	typ     coll.DataType
	red     coll.RedOp
	count   uint64
	slice   uint64
	inPlace bool
	gaps    bool // V forms: offsets with room between the shares
	ops     []proto.Op
	mem     [][]byte // by rank
	send    []uint64 // offset of the send buffer in mem
	recv    []uint64
	before  [][]byte // mem before the call
}

func (c *call) String() string {
	return fmt.Sprintf("%+v, %s %s, count %d, slices of %d bytes, in place %v",
		c.key, c.typ, c.red, c.count, c.slice, c.inPlace)
}

// prepare gives every rank random contributions, between guards.
func (c *call) prepare(rng *rand.Rand) {
	size := c.typ.Size()
	pairs := make([][]uint64, c.key.N)
	for r := range pairs {
		pairs[r] = make([]uint64, c.key.N)
		for p := range pairs[r] {
			pairs[r][p] = rng.Uint64N(c.count+1) * uint64(rng.IntN(2))
		}
	}
	for r := range c.key.N {
		op := proto.Op{Func: c.key.Func, Type: c.typ, Red: c.red, N: c.key.N, Rank: r, Root: c.key.Root, Count: c.count,
			Scale: porttest.Bits(c.typ, porttest.Num{I: int64(r + 2), F: 0.75 * float64(r+1)})}
		c.shares(&op, pairs)
		send, recv := proto.Reach(&op, proto.SendBuf)*size, proto.Reach(&op, proto.RecvBuf)*size
		sendAt, recvAt := uint64(64), 64+send+64
		if c.inPlace {
			recvAt = 64
			switch c.key.Func {
			case coll.AllGather, coll.AllGatherV, coll.Gather, coll.Split:
				lo, _ := proto.BlockOf(&op, proto.RecvBuf, r)
				sendAt += lo * size
			case coll.ReduceScatter, coll.ReduceScatterV, coll.Scatter:
				lo, _ := proto.BlockOf(&op, proto.SendBuf, r)
				recvAt += lo * size
			}
		}
		mem := make([]byte, max(sendAt+send, recvAt+recv)+64)
		for i := range mem {
			mem[i] = 0xa5
		}
		for i := range send / size {
			porttest.Store(c.typ, mem[sendAt:], i, porttest.Num{I: rng.Int64N(100), F: rng.Float64()*4 - 2})
		}
		op.Send, op.Recv = device.BytesPtr(mem[sendAt:]), device.BytesPtr(mem[recvAt:])
		c.ops, c.mem, c.send, c.recv = append(c.ops, op), append(c.mem, mem), append(c.send, sendAt), append(c.recv, recvAt)
		c.before = append(c.before, bytes.Clone(mem))
	}
}

// shares fills the counts of the V forms from what each pair exchanges.
func (c *call) shares(op *proto.Op, pairs [][]uint64) {
	displs := func(counts []uint64) []uint64 {
		if !c.gaps {
			return nil
		}
		d, at := make([]uint64, len(counts)), uint64(3)
		for i, n := range counts {
			d[i], at = at, at+n+2
		}
		return d
	}
	switch op.Func {
	case coll.AllGatherV, coll.ReduceScatterV:
		op.RecvCounts = pairs[0]
	case coll.AlltoAllV:
		op.SendCounts = pairs[op.Rank]
		for _, row := range pairs {
			op.RecvCounts = append(op.RecvCounts, row[op.Rank])
		}
		op.SendDispls = displs(op.SendCounts)
	default:
		return
	}
	op.RecvDispls = displs(op.RecvCounts)
}

// given is what rank r contributes at element i of a block of its send buffer.
func (c *call) given(r, block int, i uint64) porttest.Num {
	op := &c.ops[r]
	lo, _ := proto.BlockOf(op, proto.SendBuf, block)
	v := porttest.Load(c.typ, c.before[r][c.send[r]:], lo+i)
	if c.red == coll.PreMulSum && c.key.Func.Reduces() {
		acc := device.Accumulator(c.typ, c.red)
		v = porttest.Round(c.typ, porttest.Combine(acc, coll.Prod, v, porttest.FromBits(c.typ, op.Scale)))
	}
	return v
}

// want is element i of a block of rank r's result, by definition.
func (c *call) want(r, block int, i uint64) porttest.Num {
	switch c.key.Func {
	case coll.Broadcast:
		return c.given(c.key.Root, 0, i)
	case coll.AllGather, coll.AllGatherV, coll.Gather, coll.Split:
		return c.given(block, 0, i)
	case coll.AlltoAll, coll.AlltoAllV:
		return c.given(block, r, i)
	case coll.Scatter:
		return c.given(c.key.Root, r, i)
	case coll.Reduce:
		return c.sum((c.key.Root+1)%c.key.N, 0, i)
	case coll.ReduceScatter, coll.ReduceScatterV:
		return c.sum((r+1)%c.key.N, r, i)
	}
	if c.key.Algo == proto.Tree {
		return c.treeSum(0, i)
	}
	return c.sum(proto.ChunkOf(&c.ops[r], c.key.N, c.key.Channels, i), 0, i)
}

// sum adds up one element of all ranks: in rank order and with one rounding, or around the ring from first with one at each hop.
func (c *call) sum(first, block int, i uint64) porttest.Num {
	acc, n := device.Accumulator(c.typ, c.red), c.key.N
	if n == 1 {
		return c.given(0, block, i)
	}
	ring := c.key.Algo == proto.Ring
	if !ring {
		first = 0
	}
	v := c.given(first, block, i)
	for k := 1; k < n; k++ {
		v = porttest.Combine(acc, c.red, v, c.given((first+k)%n, block, i))
		if ring && k < n-1 {
			v = porttest.Round(c.typ, v)
		}
	}
	if c.red == coll.Avg {
		v = porttest.Divide(v, c.typ, uint64(n))
	}
	return porttest.Round(c.typ, v)
}

// treeSum adds up one element of the ranks from place on that are below it in the tree, with one rounding at each of them.
func (c *call) treeSum(place int, i uint64) porttest.Num {
	acc, n, v := device.Accumulator(c.typ, c.red), c.key.N, c.given(place, 0, i)
	for child := range proto.Below(place, n) {
		v = porttest.Combine(acc, c.red, v, c.treeSum(child, i))
	}
	if n == 1 {
		return v
	}
	if c.red == coll.Avg && place == 0 {
		v = porttest.Divide(v, c.typ, uint64(n))
	}
	return porttest.Round(c.typ, v)
}

// verify compares every byte of every rank's memory.
func (c *call) verify(t testing.TB) {
	t.Helper()
	for r := range c.mem {
		op, want := &c.ops[r], bytes.Clone(c.before[r])
		if proto.Reach(op, proto.RecvBuf) > 0 {
			for b := range proto.Blocks(op.Func, proto.RecvBuf, op.N) {
				lo, n := proto.BlockOf(op, proto.RecvBuf, b)
				for i := range n {
					porttest.Store(c.typ, want[c.recv[r]:], lo+i, c.want(r, b, i))
				}
			}
		}
		if !bytes.Equal(want, c.mem[r]) {
			at := 0
			for want[at] == c.mem[r][at] {
				at++
			}
			t.Fatalf("%v: rank %d differs at byte %d (send at %d, recv at %d): % x, wanted % x", c, r, at, c.send[r], c.recv[r],
				c.mem[r][at:min(at+16, len(want))], want[at:min(at+16, len(want))])
		}
	}
}
