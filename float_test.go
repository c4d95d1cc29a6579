package hccl

import (
	"math"
	"testing"

	"hccl.dev/hccl/internal/coll"
)

var formats = map[coll.DataType]format{coll.Float16: float16Format, coll.Bfloat16: bfloat16Format, coll.Float8e4m3: float8E4M3Format,
	coll.Float8e5m2: float8E5M2Format}

// Numbers that everybody knows.
func TestKnownFloats(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, k := range []struct {
		typ  coll.DataType
		bits uint32
		x    float32
	}{
		{coll.Float16, 0x3c00, 1}, {coll.Float16, 0xc000, -2}, {coll.Float16, 0x7bff, 65504}, {coll.Float16, 0x0001, 0x1p-24},
		{coll.Float16, 0x7c00, inf}, {coll.Bfloat16, 0x3f80, 1}, {coll.Bfloat16, 0x0001, 0x1p-133}, {coll.Bfloat16, 0xff80, -inf},
		{coll.Float8e4m3, 0x38, 1}, {coll.Float8e4m3, 0x7e, 448}, {coll.Float8e4m3, 0x01, 0x1p-9}, {coll.Float8e4m3, 0x08, 0x1p-6},
		{coll.Float8e5m2, 0x3c, 1}, {coll.Float8e5m2, 0x7b, 57344}, {coll.Float8e5m2, 0x01, 0x1p-16}, {coll.Float8e5m2, 0x7c, inf},
	} {
		f := formats[k.typ]
		if got := f.decode(k.bits); got != k.x {
			t.Errorf("%v %#x is %v, want %v", k.typ, k.bits, got, k.x)
		}
		if got := f.encode(k.x); got != k.bits {
			t.Errorf("%v of %v is %#x, want %#x", k.typ, k.x, got, k.bits)
		}
	}
	if got := NewFloat8E4M3(465); got != 0x7f {
		t.Errorf("465 as float8e4m3 is %#x, want NaN", got)
	}
	if got := NewFloat8E4M3(464); got != 0x7e { // halfway to 480, to even
		t.Errorf("464 as float8e4m3 is %#x, want 448", got)
	}
	if got := NewFloat16(65520); got != 0x7c00 {
		t.Errorf("65520 as float16 is %#x, want infinity", got)
	}
}

// Every pattern comes back from its number, and the number halfway to the next goes to the even one of the two.
func TestAllFloats(t *testing.T) {
	for typ, f := range formats {
		for bits := uint32(0); bits < 1<<f.bits; bits++ {
			x := f.decode(bits)
			if x != x {
				if got := f.encode(x); got != f.nan() {
					t.Fatalf("%v: NaN is %#x", typ, got)
				}
				continue
			}
			if got := f.encode(x); got != bits {
				t.Fatalf("%v: %#x is %v is %#x", typ, bits, x, got)
			}
			if bits&f.limit() >= f.infinity()-1 || bits&f.sign() != 0 {
				continue
			}
			half := float32((float64(x) + float64(f.decode(bits+1))) / 2)
			if got := f.encode(half); got != bits+bits&1 {
				t.Fatalf("%v: %v, halfway from %#x, is %#x", typ, half, bits, got)
			}
			if got := f.encode(math.Nextafter32(half, 0)); got != bits {
				t.Fatalf("%v: just below halfway from %#x is %#x", typ, bits, got)
			}
		}
	}
}

func TestFloatsPrint(t *testing.T) {
	for _, k := range []struct{ got, want string }{
		{NewFloat16(1.5).String(), "1.5"}, {NewBfloat16(-2).String(), "-2"},
		{NewFloat8E4M3(448).String(), "448"}, {NewFloat8E5M2(float32(math.Inf(-1))).String(), "-Inf"},
	} {
		if k.got != k.want {
			t.Errorf("printed %q, want %q", k.got, k.want)
		}
	}
}
