package proto

import (
	"iter"

	"hccl.dev/hccl/internal/coll"
)

// What tests in package proto_test see of the package.
var (
	Has  = has
	Keys = keys
)

// ChunkOf is the chunk of n that element i of a vector lies in, with so many channels.
func ChunkOf(op *Op, n, channels int, i uint64) int {
	unit := granule(op.Type.Size())
	for c := range n * channels {
		if e := part(op.Count, unit, uint64(c), uint64(n*channels)); i >= e.lo && i < e.lo+e.n {
			return c / channels
		}
	}
	return -1
}

// BlockOf is where a block of a buffer lies.
func BlockOf(op *Op, buf Buffer, b int) (lo, n uint64) {
	e := op.block(buf, b)
	return e.lo, e.n
}

// Below goes through the children of a place in a tree of n, by the definition: whose place without its lowest bit it is.
func Below(place, n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for p := place + 1; p < n; p++ {
			if p&(p-1) == place && !yield(p) {
				return
			}
		}
	}
}

// Reach is one past the last element that op may touch, Blocks the number of a buffer's blocks.
func Reach(op *Op, buf Buffer) uint64 { return op.reach(buf) }

func Blocks(f coll.Func, buf Buffer, n int) int { return blocks(f, buf, n) }
