package shm

import "math/bits"

// buddy divides a range of units, a power of two, into blocks of powers of two of them. A block of order k starts at a multiple
// of 1<<k; two free halves are one free block again. It is arithmetic: it knows no memory. The lowest fitting block is
// taken, so that use gathers at the bottom and the top can be given back.
type buddy struct {
	top  int
	free [][]uint64 // per order: bit i is the block that starts at unit i<<order
}

func newBuddy(top int) *buddy {
	b := &buddy{top: top, free: make([][]uint64, top+1)}
	for k := range b.free {
		b.free[k] = make([]uint64, (1<<(top-k)+63)/64)
	}
	b.set(top, 0)
	return b
}

func (b *buddy) set(k, i int)      { b.free[k][i/64] |= 1 << (i % 64) }
func (b *buddy) clear(k, i int)    { b.free[k][i/64] &^= 1 << (i % 64) }
func (b *buddy) has(k, i int) bool { return b.free[k][i/64]>>(i%64)&1 != 0 }

// alloc returns the first unit of a block of the given order, or -1.
func (b *buddy) alloc(order int) int {
	for k := order; k <= b.top; k++ {
		i := firstBit(b.free[k])
		if i < 0 {
			continue
		}
		b.clear(k, i)
		for ; k > order; k-- { // keep the lower half, free the upper
			i *= 2
			b.set(k-1, i+1)
		}
		return i << order
	}
	return -1
}

// release frees a block that alloc returned and joins it with its free neighbours.
func (b *buddy) release(unit, order int) {
	i := unit >> order
	for ; order < b.top && b.has(order, i^1); order++ {
		b.clear(order, i^1)
		i /= 2
	}
	b.set(order, i)
}

func firstBit(set []uint64) int {
	for w, v := range set {
		if v != 0 {
			return w*64 + bits.TrailingZeros64(v)
		}
	}
	return -1
}

// orderOf is the order of the smallest block of at least n bytes in units of unit bytes.
func orderOf(n, unit uint64) int {
	if n <= unit {
		return 0
	}
	return bits.Len64((n - 1) / unit)
}
