package staging

import (
	"cmp"
	"math/bits"
)

// Options are the bounds of a pool, in bytes. What is 0 has its default.
type Options struct {
	Initial uint64 // kept while there are communicators, once it was needed
	Most    uint64 // the cap
	Growth  uint64 // by which it grows; rounded up to a power of two, the largest class at least
	Step    uint64 // from one class to the next: 2, 4 or 8 times the size; others are rounded up to these
	NoLock  bool   // do not lock memory
	NoHuge  bool   // do not ask for huge pages
}

// The defaults.
const (
	DefaultInitial = 64 << 20
	DefaultMost    = 512 << 20
	DefaultGrowth  = 4 << 20
	DefaultStep    = 2
)

const (
	leastBits   = 12 // the smallest class, 4 KiB: a page
	mostBits    = 22 // the largest one, 4 MiB
	mostClasses = mostBits - leastBits + 1
	indexBits   = 16 // of a buffer's number within its chunk: chunks of up to 256 MiB
)

// mostGrowth is the largest chunk whose buffers can be numbered.
const mostGrowth = 1 << (indexBits + leastBits)

func (o Options) filled() Options {
	o.Initial = cmp.Or(o.Initial, DefaultInitial)
	o.Most = cmp.Or(o.Most, DefaultMost)
	o.Growth = min(max(roundUp(cmp.Or(o.Growth, DefaultGrowth)), 1<<mostBits), mostGrowth)
	o.Step = roundUp(cmp.Or(o.Step, DefaultStep))
	o.Most = max(o.Most, o.Growth)
	o.Initial = min(o.Initial, o.Most)
	return o
}

func roundUp(n uint64) uint64 { return 1 << bits.Len64(n-1) }

// classes are the sizes of buffers.
type classes struct {
	sizes []uint64
	index [mostBits + 1]uint8 // by the number of bits that a size less one has
}

func newClasses(step uint64) (c classes) {
	for size := uint64(1) << leastBits; size < 1<<mostBits; size *= step {
		c.sizes = append(c.sizes, size)
	}
	c.sizes = append(c.sizes, 1<<mostBits)
	for b, k := 0, 0; b < len(c.index); b++ {
		if c.sizes[k] < 1<<b {
			k++
		}
		c.index[b] = uint8(k)
	}
	return c
}

// of is the smallest class for n bytes, n at most the largest size.
func (c *classes) of(n uint64) uint8 { return c.index[bits.Len64(max(n, 1)-1)] }

func (c *classes) largest() uint64 { return 1 << mostBits }
