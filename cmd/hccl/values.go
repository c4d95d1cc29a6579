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
	bits  func(x int) uint64
}

func integer(x int) uint64  { return uint64(x) }
func float32b(x int) uint64 { return uint64(math.Float32bits(float32(x))) }
func float64b(x int) uint64 { return math.Float64bits(float64(x)) }
func bfloat(x int) uint64   { return float32b(x) >> 16 } // exact: the numbers have few digits

// half is exact for whole numbers up to 2048.
func half(x int) uint64 {
	b := math.Float32bits(float32(x))
	if x == 0 {
		return 0
	}
	exponent := int(b>>23&0xff) - 127 + 15
	return uint64(b>>31<<15 | uint32(exponent)<<10 | b>>13&0x3ff)
}

var elementTypes = []elementType{
	{"int8", 0, 1, integer}, {"uint8", 1, 1, integer}, {"int32", 2, 4, integer}, {"uint32", 3, 4, integer},
	{"int64", 4, 8, integer}, {"uint64", 5, 8, integer}, {"half", 6, 2, half}, {"float", 7, 4, float32b},
	{"double", 8, 8, float64b}, {"bfloat16", 9, 2, bfloat},
}

// reduction is a reduction of the ABI: what a rank puts in at an index, and how two values join.
type reduction struct {
	name  string
	value int // ncclRedOp_t
	input func(rank, index, n int) int
	join  func(a, b int) int
}

var reductions = []reduction{
	{"sum", 0, func(rank, i, _ int) int { return (3*rank + i) & 3 }, func(a, b int) int { return a + b }},
	{"prod", 1, func(rank, i, _ int) int { return 1 + oneIf(rank%8 == i%8) }, func(a, b int) int { return a * b }},
	{"max", 2, func(rank, i, _ int) int { return (13*rank + i) % 64 }, func(a, b int) int { return max(a, b) }},
	{"min", 3, func(rank, i, _ int) int { return (13*rank + i) % 64 }, func(a, b int) int { return min(a, b) }},
	{"avg", 4, balanced, func(a, b int) int { return a + b }},
}

// moved is the input of operations that only move: ranks and places differ.
var moved = reduction{"none", 0, func(rank, i, _ int) int { return (13*rank + i) % 64 }, nil}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// balanced goes up for one rank of a pair and down for the other, so that the mean is whole.
func balanced(rank, i, n int) int {
	base := 1 + (i & 3)
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

func (j *job) sent(rank, part int) pattern {
	return j.typ.pattern(func(i int) int { return j.red.input(rank, i+partShift*part, j.ranks) })
}

func (j *job) expected(o origin) pattern {
	if !o.sum {
		return j.sent(o.rank, o.part)
	}
	return j.typ.pattern(func(i int) int {
		i += partShift * o.part
		acc := j.red.input(0, i, j.ranks)
		for r := 1; r < j.ranks; r++ {
			acc = j.red.join(acc, j.red.input(r, i, j.ranks))
		}
		if j.red.name == "avg" {
			acc /= j.ranks
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
