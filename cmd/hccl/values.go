package main

import (
	"bytes"
	"encoding/binary"
	"math"
)

// The check compares every element. Inputs are small whole numbers that repeat every `period` elements, chosen so that each
// result is exact in each type whatever the order of the additions: a wrong element is then wrong in its bytes, and no tolerance
// hides it. What is expected is made from the inputs of all ranks, never from what the library returned.

const period = 64

// elementType is an element type of the ABI; bits writes a whole number in it.
type elementType struct {
	name  string // as nccl-tests name it
	value int    // ncclDataType_t
	size  int
	exact int // whole numbers up to this one are exact, and results are kept below it
	bits  func(x int) uint64
	float bool
}

func integer(x int) uint64  { return uint64(x) }
func float32b(x int) uint64 { return uint64(math.Float32bits(float32(x))) }
func float64b(x int) uint64 { return math.Float64bits(float64(x)) }
func truth(x int) uint64    { return uint64(oneIf(x != 0)) }
func bfloat(x int) uint64   { return float32b(x) >> 16 } // exact: the numbers have few digits

// narrow writes whole numbers in a float with few digits: exact where they have no more than it has.
func narrow(bias, digits int) func(int) uint64 {
	return func(x int) uint64 {
		if x == 0 {
			return 0
		}
		b := math.Float32bits(float32(x))
		exponent := int(b>>23&0xff) - 127 + bias
		return uint64(exponent)<<digits | uint64(b>>(23-digits))&(1<<digits-1)
	}
}

var elementTypes = []elementType{
	{"int8", 0, 1, 256, integer, false}, {"uint8", 1, 1, 256, integer, false}, {"int32", 2, 4, 256, integer, false},
	{"uint32", 3, 4, 256, integer, false}, {"int64", 4, 8, 256, integer, false}, {"uint64", 5, 8, 256, integer, false},
	{"half", 6, 2, 256, narrow(15, 10), true},
	{"float", 7, 4, 256, float32b, true}, {"double", 8, 8, 256, float64b, true}, {"bfloat16", 9, 2, 256, bfloat, true},
	{"f8e4m3", 10, 1, 8, narrow(7, 3), true}, {"f8e5m2", 11, 1, 8, narrow(15, 2), true},
	{"int16", 64, 2, 256, integer, false}, {"uint16", 65, 2, 256, integer, false}, {"bool", 66, 1, 256, truth, false},
}

// reduction is a reduction of the ABI: what a rank of n puts in at an index, and how two values join.
type reduction struct {
	name  string
	value int // ncclRedOp_t
	input func(rank, index, n, exact int) int
	join  func(a, b int) int
	most  int // ranks for which results are exact in the 8-bit floats
}

var reductions = []reduction{
	{"sum", 0, sparse, func(a, b int) int { return a + b }, 32},
	{"prod", 1, twos, func(a, b int) int { return a * b }, mostRanks},
	{"max", 2, any64, func(a, b int) int { return max(a, b) }, mostRanks},
	{"min", 3, any64, func(a, b int) int { return min(a, b) }, mostRanks},
	{"avg", 4, balanced, func(a, b int) int { return a + b }, 8},
	{"band", 64, any64, func(a, b int) int { return a & b }, mostRanks},
	{"bor", 65, any64, func(a, b int) int { return a | b }, mostRanks},
	{"bxor", 66, any64, func(a, b int) int { return a ^ b }, mostRanks},
}

// takes reports whether the reduction is defined for a type: bits are those of integers, and truth has no mean.
func (r *reduction) takes(t *elementType) bool {
	switch r.name {
	case "band", "bor", "bxor":
		return !t.float
	case "avg":
		return t.name != "bool"
	}
	return true
}

// sparse keeps a sum exact: with many ranks only one in `every` puts in something at an index, and each does at some.
func sparse(rank, i, n, exact int) int {
	every := 1
	for 3*((n+every-1)/every) > exact {
		every *= 2
	}
	if (rank+i)%every != 0 {
		return 0
	}
	return (3*(rank/every) + i/every) & 3
}

// twos gives a product of at most 2^8.
func twos(rank, i, n, _ int) int {
	every := 8
	for (n+every-1)/every > 8 {
		every *= 2
	}
	return 1 + oneIf(rank%every == i%every)
}

func any64(rank, i, _, exact int) int { return (13*rank + i) % min(64, exact) }

// moved is the input of operations that only move: ranks and places differ.
var moved = reduction{name: "none", input: any64, most: mostRanks}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// balanced goes up for one rank of a pair and down for the other, so that the mean is whole.
func balanced(rank, i, n, exact int) int {
	base := 1 + (i & 3)
	if exact < 256 {
		base = 1
	}
	switch {
	case rank == n-1 && n%2 == 1: // no partner
		return base
	case (rank+rank/2+i)%2 == 0:
		return base + 1
	}
	return base - 1
}

// pattern is one period of a part: what rank sends, or what arrives from an origin.
type pattern []byte

// partShift sets the parts of a buffer apart.
const partShift = 5

func (s *subject) sent(rank, part int) pattern {
	return s.typ.pattern(func(i int) int { return s.input(rank, i+partShift*part) })
}

// input is what a rank puts in at an index: a number, or its last bit where elements are true or false.
func (s *subject) input(rank, i int) int {
	x := s.red.input(rank, i, s.ranks, s.typ.exact)
	if s.typ.name == "bool" {
		return x & 1
	}
	return x
}

func (s *subject) expected(o origin) pattern {
	if !o.sum {
		return s.sent(o.rank, o.part)
	}
	return s.typ.pattern(func(i int) int {
		i += partShift * o.part
		acc := s.input(0, i)
		for r := 1; r < s.ranks; r++ {
			acc = s.red.join(acc, s.input(r, i))
		}
		if s.red.name == "avg" {
			acc /= s.ranks
		}
		return acc
	})
}

func (t *elementType) pattern(at func(i int) int) pattern {
	p := make(pattern, 0, period*8)
	for i := range period {
		p = append(p, binary.LittleEndian.AppendUint64(nil, t.bits(at(i)))[:t.size]...)
	}
	return p
}

// fill repeats the pattern over a part.
func (p pattern) fill(b []byte) {
	for n := copy(b, p); n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// wrong counts the elements of size bytes that differ from the pattern.
func (p pattern) wrong(b []byte, size int) (n int) {
	for ; len(b) > 0; b = b[min(len(p), len(b)):] {
		got, want := b[:min(len(p), len(b))], p[:min(len(p), len(b))]
		if bytes.Equal(got, want) {
			continue
		}
		for k := 0; k < len(got); k += size {
			if !bytes.Equal(got[k:k+size], want[k:k+size]) {
				n++
			}
		}
	}
	return n
}
