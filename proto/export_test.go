package proto

import "hccl.dev/hccl/internal/coll"

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

// Reach is one past the last element that op may touch, Blocks the number of a buffer's blocks.
func Reach(op *Op, buf Buffer) uint64 { return op.reach(buf) }

func Blocks(f coll.Func, buf Buffer, n int) int { return blocks(f, buf, n) }
