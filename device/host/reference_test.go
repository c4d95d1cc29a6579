package host

import (
	"encoding/binary"
	"math"
	"math/big"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// The reference: one element at a time, by docs/numerics.md, with big integers for the integers and by looking through a type's
// patterns for the nearest number for the narrow floats. Nothing in it is shared with the C code.

// format describes a narrow float; top is the first pattern above the finite numbers.
type format struct {
	man, bias, width int
	top, nan         uint64
}

var formats = map[coll.DataType]format{
	coll.Float16:    {10, 15, 16, 0x7c00, 0x7e00},
	coll.Bfloat16:   {7, 127, 16, 0x7f80, 0x7fc0},
	coll.Float8e4m3: {3, 7, 8, 0x7f, 0x7f},
	coll.Float8e5m2: {2, 15, 8, 0x7c, 0x7e},
}

// magnitude is the value of a pattern without sign, whatever the pattern stands for.
func (f format) magnitude(bits uint64) float64 {
	e, m := int(bits>>f.man), bits&(1<<f.man-1)
	if e == 0 {
		return math.Ldexp(float64(m), 1-f.bias-f.man)
	}
	return math.Ldexp(float64(m+1<<f.man), e-f.bias-f.man)
}

func (f format) decode(bits uint64) float64 {
	mag, v := bits&(1<<(f.width-1)-1), 0.0
	switch {
	case mag < f.top:
		v = f.magnitude(mag)
	case mag == f.top && f.top != f.nan:
		v = math.Inf(1)
	default:
		return math.NaN()
	}
	return math.Copysign(v, 1-2*float64(bits>>(f.width-1)))
}

// encode looks for the pattern nearest to v; the pattern above the largest number stands for the next number there would be.
func (f format) encode(v float64) uint64 {
	if math.IsNaN(v) {
		return f.nan
	}
	var sign uint64
	if math.Signbit(v) {
		sign = 1 << (f.width - 1)
	}
	v = math.Abs(v)
	lo, hi := uint64(0), f.top
	for lo < hi { // the largest pattern that is not above v
		if mid := (lo + hi + 1) / 2; f.magnitude(mid) <= v {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if lo < f.top {
		below, above := v-f.magnitude(lo), f.magnitude(lo+1)-v
		if above < below || (above == below && lo&1 == 1) {
			lo++
		}
	}
	if lo == f.nan {
		return lo // e4m3 has no infinity
	}
	return lo | sign
}

func load(t coll.DataType, b []byte, i int) uint64 {
	switch t.Size() {
	case 1:
		return uint64(b[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return binary.LittleEndian.Uint64(b[8*i:])
}

func store(t coll.DataType, b []byte, i int, v uint64) {
	switch t.Size() {
	case 1:
		b[i] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
}

// number and numberBits turn bits of a float type into a number and back, rounding to the type.
func number(t coll.DataType, bits uint64) float64 {
	switch t {
	case coll.Float32:
		return float64(math.Float32frombits(uint32(bits)))
	case coll.Float64:
		return math.Float64frombits(bits)
	}
	return formats[t].decode(bits)
}

func numberBits(t coll.DataType, v float64) uint64 {
	switch {
	case t == coll.Float32 && v != v:
		return 0x7fc00000
	case t == coll.Float32:
		return uint64(math.Float32bits(float32(v)))
	case t == coll.Float64 && v != v:
		return 0x7ff8000000000000
	case t == coll.Float64:
		return math.Float64bits(v)
	}
	return formats[t].encode(v)
}

// rounded is v in the precision of the accumulator of t. float32 operations are done in float64 and rounded: for one addition,
// multiplication or division that is the same as float32 arithmetic.
func rounded(t coll.DataType, v float64) float64 {
	if t == coll.Float64 {
		return v
	}
	return float64(float32(v))
}

func combineReal(t coll.DataType, red coll.RedOp, a, b float64) float64 {
	switch {
	case a != a || b != b: // math.Max would let infinity win
		return math.NaN()
	case red == coll.Prod:
		return rounded(t, a*b)
	case red == coll.Max:
		return math.Max(a, b) // +0 is above -0
	case red == coll.Min:
		return math.Min(a, b)
	}
	return rounded(t, a+b)
}

// integer is bits as a number of type t, and wrap a number as bits of it.
func integer(t coll.DataType, bits uint64) *big.Int {
	switch t {
	case coll.Int8:
		return big.NewInt(int64(int8(bits)))
	case coll.Int16:
		return big.NewInt(int64(int16(bits)))
	case coll.Int32:
		return big.NewInt(int64(int32(bits)))
	case coll.Int64:
		return big.NewInt(int64(bits))
	}
	return new(big.Int).SetUint64(bits)
}

func wrap(t coll.DataType, v *big.Int) uint64 {
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(8*t.Size())), big.NewInt(1))
	return new(big.Int).And(v, mask).Uint64()
}

func combineInteger(red coll.RedOp, a, b *big.Int) *big.Int {
	switch {
	case red == coll.Prod:
		return new(big.Int).Mul(a, b)
	case red == coll.Max && a.Cmp(b) < 0, red == coll.Min && a.Cmp(b) > 0:
		return b
	case red == coll.Max || red == coll.Min:
		return a
	case red == coll.And:
		return new(big.Int).And(a, b)
	case red == coll.Or:
		return new(big.Int).Or(a, b)
	case red == coll.Xor:
		return new(big.Int).Xor(a, b)
	}
	return new(big.Int).Add(a, b)
}

// reference is element i of the result of c, whose sources are srcs, all of one type.
func reference(c *device.Cmd, srcs [][]byte, i int) uint64 {
	t := c.SrcType
	bits := make([]uint64, len(srcs))
	for s := range srcs {
		bits[s] = load(t, srcs[s], i)
		if int(c.Scaled) == s {
			bits[s] = scaled(t, bits[s], c.Scale)
		}
	}
	if c.Op == device.Copy {
		return bits[0]
	}
	if t.IsFloat() {
		return referenceReal(c, bits)
	}
	if t == coll.Bool {
		return referenceTruth(c.Red, bits)
	}
	acc := integer(t, bits[0])
	for _, b := range bits[1:] {
		acc = combineInteger(c.Red, acc, integer(t, b))
	}
	if c.Red == coll.Avg {
		acc.Quo(acc, new(big.Int).SetUint64(c.Div))
	}
	return wrap(t, acc)
}

func referenceTruth(red coll.RedOp, bits []uint64) uint64 {
	n := 0
	for _, b := range bits {
		if b != 0 {
			n++
		}
	}
	result := false
	switch red {
	case coll.Sum, coll.Max, coll.Or:
		result = n > 0
	case coll.Prod, coll.Min, coll.And:
		result = n == len(bits)
	case coll.Xor:
		result = n%2 == 1
	}
	if result {
		return 1
	}
	return 0
}

func referenceReal(c *device.Cmd, bits []uint64) uint64 {
	t := c.SrcType
	acc := number(t, bits[0])
	for _, b := range bits[1:] {
		acc = combineReal(t, c.Red, acc, number(t, b))
	}
	if c.Red == coll.Avg {
		acc = rounded(t, acc/float64(c.Div))
	}
	return numberBits(t, acc)
}

func scaled(t coll.DataType, bits, factor uint64) uint64 {
	if t.IsFloat() {
		return numberBits(t, rounded(t, number(t, bits)*number(t, factor)))
	}
	return wrap(t, new(big.Int).Mul(integer(t, bits), integer(t, factor)))
}
