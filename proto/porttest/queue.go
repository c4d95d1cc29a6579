package porttest

import (
	"encoding/binary"
	"fmt"
	"math"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// Queue is a device.Queue that computes in plain Go, element by element, at once. It knows the types of Types; a sum for the mean
// of 64-bit integers is held in 64 bits, so tests keep their values small.
type Queue struct{ Cmds int }

// Types are the element types that Queue knows.
var Types = []coll.DataType{coll.Uint8, coll.Int32, coll.Int64, coll.Float32, coll.Float64, coll.Bfloat16, coll.Int16, coll.Uint16}

// StreamFrom is a size that tests do not reach.
func (q *Queue) StreamFrom() uint64 { return 1 << 40 }

// Submit runs the commands.
func (q *Queue) Submit(cmds []device.Cmd) (device.Fence, error) {
	for i := range cmds {
		if err := run(&cmds[i]); err != nil {
			return device.Fence{}, err
		}
		q.Cmds++
	}
	return device.Fence{}, nil
}

func run(c *device.Cmd) error {
	if c.NSrc == 0 || c.NDst == 0 || c.N == 0 || c.Op == device.Copy && c.NSrc != 1 {
		return fmt.Errorf("a command with %d sources, %d destinations, %d elements", c.NSrc, c.NDst, c.N)
	}
	out := make([]byte, c.N*c.DstType.Size())
	for i := range c.N {
		var acc Num
		started := c.Init != 0
		if started {
			acc = Load(c.Acc, device.Bytes(c.Init, c.N*c.Acc.Size()), i)
		}
		for k := range int(c.NSrc) {
			v := Load(c.SrcType, device.Bytes(c.Src[k], c.N*c.SrcType.Size()), i)
			if k == int(c.Scaled) {
				v = Round(c.SrcType, Combine(c.Acc, coll.Prod, v, FromBits(c.SrcType, c.Scale)))
			}
			if started {
				v = Combine(c.Acc, c.Red, acc, v)
			}
			acc, started = v, true
		}
		if c.Op == device.Reduce && c.Red == coll.Avg && !(c.DstType == c.Acc && c.Acc != c.SrcType) {
			acc = Divide(acc, c.SrcType, c.Div)
		}
		Store(c.DstType, out, i, acc)
	}
	for d := range int(c.NDst) {
		copy(device.Bytes(c.Dst[d], uint64(len(out))), out)
	}
	return nil
}

// Num is an element outside memory: an integer or a float, by its type.
type Num struct {
	I int64
	F float64
}

// Load reads element i.
func Load(t coll.DataType, b []byte, i uint64) Num {
	var w [8]byte
	copy(w[:], b[i*t.Size():][:t.Size()])
	return FromBits(t, binary.LittleEndian.Uint64(w[:]))
}

// FromBits decodes an element.
func FromBits(t coll.DataType, u uint64) Num {
	switch t {
	case coll.Uint8, coll.Uint16, coll.Uint32, coll.Int64, coll.Uint64:
		return Num{I: int64(u)}
	case coll.Int8:
		return Num{I: int64(int8(u))}
	case coll.Int16:
		return Num{I: int64(int16(u))}
	case coll.Int32:
		return Num{I: int64(int32(u))}
	case coll.Float32:
		return Num{F: float64(math.Float32frombits(uint32(u)))}
	case coll.Float64:
		return Num{F: math.Float64frombits(u)}
	case coll.Bfloat16:
		return Num{F: float64(math.Float32frombits(uint32(u) << 16))}
	case coll.Int128, coll.Uint128:
		return Num{I: int64(u)}
	}
	panic("no test arithmetic for " + t.String())
}

// Bits encodes an element; integers wrap, floats round to the nearest even.
func Bits(t coll.DataType, v Num) uint64 {
	switch t {
	case coll.Float32:
		return uint64(math.Float32bits(float32(v.F)))
	case coll.Float64:
		return math.Float64bits(v.F)
	case coll.Bfloat16:
		u := math.Float32bits(float32(v.F))
		return uint64((u + 0x7fff + u>>16&1) >> 16)
	}
	return uint64(v.I)
}

// Store writes element i.
func Store(t coll.DataType, b []byte, i uint64, v Num) {
	var w [16]byte
	binary.LittleEndian.PutUint64(w[:], Bits(t, v))
	copy(b[i*t.Size():][:t.Size()], w[:])
}

// Round is v as type t holds it.
func Round(t coll.DataType, v Num) Num {
	var b [16]byte
	Store(t, b[:], 0, v)
	return Load(t, b[:], 0)
}

// Combine applies a reduction once in type t.
func Combine(t coll.DataType, red coll.RedOp, a, b Num) Num {
	switch red {
	case coll.Prod:
		a.I, a.F = a.I*b.I, a.F*b.F
	case coll.Max:
		a.I, a.F = max(a.I, b.I), max(a.F, b.F)
	case coll.Min:
		a.I, a.F = min(a.I, b.I), min(a.F, b.F)
	case coll.And:
		a.I &= b.I
	case coll.Or:
		a.I |= b.I
	case coll.Xor:
		a.I ^= b.I
	default:
		a.I, a.F = a.I+b.I, a.F+b.F
	}
	return Round(t, a)
}

// Divide finishes a mean of n elements of type t.
func Divide(v Num, t coll.DataType, n uint64) Num {
	if !t.IsFloat() {
		return Num{I: v.I / int64(n)}
	}
	if t == coll.Float64 {
		return Num{F: v.F / float64(n)}
	}
	return Num{F: float64(float32(v.F) / float32(n))}
}
