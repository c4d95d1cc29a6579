package hccl

import (
	"math"
	"strconv"
)

// The narrow floats, by their bits. Sums of them are held in float32 and rounded once: see docs/numerics.md.
type (
	Float16    uint16 // IEEE 754 binary16
	Bfloat16   uint16 // the upper half of a float32
	Float8E4M3 uint8  // OCP E4M3: no infinity, at most 448
	Float8E5M2 uint8  // OCP E5M2, at most 57344
)

// format is how a narrow float lays out its bits.
type format struct {
	bits, significand int
	noInfinity        bool // the largest exponent holds numbers, and one pattern NaN
}

var (
	float16Format    = format{bits: 16, significand: 10}
	bfloat16Format   = format{bits: 16, significand: 7}
	float8E4M3Format = format{bits: 8, significand: 3, noInfinity: true}
	float8E5M2Format = format{bits: 8, significand: 2}
)

// NewFloat16 rounds to nearest even; what is too large becomes infinity.
func NewFloat16(x float32) Float16 { return Float16(float16Format.encode(x)) }

// NewBfloat16 rounds to nearest even; what is too large becomes infinity.
func NewBfloat16(x float32) Bfloat16 { return Bfloat16(bfloat16Format.encode(x)) }

// NewFloat8E4M3 rounds to nearest even; what is too large becomes NaN.
func NewFloat8E4M3(x float32) Float8E4M3 { return Float8E4M3(float8E4M3Format.encode(x)) }

// NewFloat8E5M2 rounds to nearest even; what is too large becomes infinity.
func NewFloat8E5M2(x float32) Float8E5M2 { return Float8E5M2(float8E5M2Format.encode(x)) }

// Float32 is the same number, exactly.
func (x Float16) Float32() float32 { return float16Format.decode(uint32(x)) }

// Float32 is the same number, exactly.
func (x Bfloat16) Float32() float32 { return bfloat16Format.decode(uint32(x)) }

// Float32 is the same number, exactly.
func (x Float8E4M3) Float32() float32 { return float8E4M3Format.decode(uint32(x)) }

// Float32 is the same number, exactly.
func (x Float8E5M2) Float32() float32 { return float8E5M2Format.decode(uint32(x)) }

func (x Float16) String() string    { return decimal(x.Float32()) }
func (x Bfloat16) String() string   { return decimal(x.Float32()) }
func (x Float8E4M3) String() string { return decimal(x.Float32()) }
func (x Float8E5M2) String() string { return decimal(x.Float32()) }

func decimal(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

func (f format) bias() int     { return 1<<(f.bits-2-f.significand) - 1 }
func (f format) sign() uint32  { return 1 << (f.bits - 1) }
func (f format) limit() uint32 { return f.sign() - 1 } // all bits but the sign

// infinity is the first pattern above all finite numbers: infinity, or the only NaN where there is none.
func (f format) infinity() uint32 {
	if f.noInfinity {
		return f.limit()
	}
	return f.limit() &^ (1<<f.significand - 1)
}

// nan is the pattern that the library's kernels write.
func (f format) nan() uint32 {
	if f.noInfinity {
		return f.limit()
	}
	return f.infinity() | 1<<(f.significand-1)
}

func (f format) decode(bits uint32) float32 {
	magnitude := bits & f.limit()
	sign := 1.0
	if bits&f.sign() != 0 {
		sign = -1
	}
	switch {
	case magnitude == f.infinity() && !f.noInfinity:
		return float32(math.Inf(int(sign)))
	case magnitude >= f.infinity():
		return float32(math.NaN())
	}
	exponent, significand := int(magnitude>>f.significand), magnitude&(1<<f.significand-1)
	if exponent == 0 {
		exponent = 1 // subnormal: no hidden bit
	} else {
		significand |= 1 << f.significand
	}
	return float32(math.Copysign(math.Ldexp(float64(significand), exponent-f.bias()-f.significand), sign))
}

func (f format) encode(x float32) uint32 {
	if x != x {
		return f.nan()
	}
	var sign uint32
	if math.Signbit(float64(x)) {
		sign = f.sign()
	}
	magnitude := math.Abs(float64(x))
	switch {
	case magnitude == 0:
		return sign
	case math.IsInf(magnitude, 0):
		return sign | f.infinity()
	}
	_, e := math.Frexp(magnitude) // magnitude is in [1/2, 1) times 2^e
	exponent := max(e-1, 1-f.bias())
	// In units of the last place: with the hidden bit, which carries into the exponent by itself, as does rounding up.
	units := math.RoundToEven(math.Ldexp(magnitude, f.significand-exponent))
	pattern := uint64(exponent+f.bias()-1)<<f.significand + uint64(units)
	return sign | uint32(min(pattern, uint64(f.infinity())))
}
