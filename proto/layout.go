package proto

import (
	"hccl.dev/hccl/internal/coll"
)

// extent is a range of elements of one buffer.
type extent struct{ lo, n uint64 }

// line is how many bytes the bounds of parts and slices are multiples of, relative to their block, where the count allows it:
// a cache line, and the widest vector.
const line = 64

// granule is the number of elements in a line.
func granule(size uint64) uint64 { return max(line/size, 1) }

// part is the range of part i of parts of a block of n elements, in whole granules as far as they go.
//
//	n=10, granule 4, 2 parts: [0,4) [4,10) - the granules are dealt out evenly, the last one may be short
func part(n, unit uint64, i, parts uint64) extent {
	whole := n/unit + min(n%unit, 1)
	each, rest := whole/parts, whole%parts
	lo := min((each*i+min(i, rest))*unit, n)
	units := each
	if i < rest {
		units++
	}
	return extent{lo, min(units*unit, n-lo)}
}

// block is the range of one block of a buffer.
func (op *Op) block(buf Buffer, b int) extent {
	u := uint64(b)
	switch op.Func {
	case coll.AllGather, coll.Gather, coll.Split:
		if buf == RecvBuf {
			return extent{op.Count * u, op.Count}
		}
	case coll.ReduceScatter, coll.Scatter:
		if buf == SendBuf {
			return extent{op.Count * u, op.Count}
		}
	case coll.AlltoAll:
		return extent{op.Count * u, op.Count}
	case coll.AllGatherV:
		if buf == RecvBuf {
			return share(op.RecvCounts, op.RecvDispls, b)
		}
		return extent{0, op.RecvCounts[op.Rank]}
	case coll.ReduceScatterV:
		if buf == SendBuf {
			return share(op.RecvCounts, op.RecvDispls, b)
		}
		return extent{0, op.RecvCounts[op.Rank]}
	case coll.AlltoAllV:
		if buf == SendBuf {
			return share(op.SendCounts, op.SendDispls, b)
		}
		return share(op.RecvCounts, op.RecvDispls, b)
	}
	return extent{0, op.Count}
}

// share is rank b's entry of the counts and offsets of a V form.
func share(counts, displs []uint64, b int) extent {
	if displs != nil {
		return extent{displs[b], counts[b]}
	}
	var lo uint64
	for _, c := range counts[:b] {
		lo += c
	}
	return extent{lo, counts[b]}
}

// span turns a symbolic range into elements of its buffer; unit is the granule.
func (op *Op) span(r Ref, unit uint64) extent {
	whole := op.block(r.Buf, int(r.Block))
	e := part(whole.n, unit, uint64(r.Part), uint64(r.Parts))
	e.lo += whole.lo
	return e
}

// blocks is the number of blocks that a buffer has in a function on n ranks.
func blocks(f coll.Func, buf Buffer, n int) int {
	switch f {
	case coll.AllGather, coll.Gather, coll.Split, coll.AllGatherV:
		if buf == RecvBuf {
			return n
		}
	case coll.ReduceScatter, coll.Scatter, coll.ReduceScatterV:
		if buf == SendBuf {
			return n
		}
	case coll.AlltoAll, coll.AlltoAllV:
		return n
	}
	return 1
}

// reach is one past the last element of a buffer that this rank of the operation may touch.
func (op *Op) reach(buf Buffer) uint64 {
	if op.Func.Rooted() && op.Rank != op.Root && (buf == RecvBuf) == (op.Func == coll.Reduce || op.Func == coll.Gather) {
		return 0
	}
	var end uint64
	for b := range blocks(op.Func, buf, op.N) {
		if e := op.block(buf, b); e.n > 0 {
			end = max(end, e.lo+e.n)
		}
	}
	return end
}
