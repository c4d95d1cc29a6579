package main

import (
	"math"
	"testing"
)

func jobOf(op, typ, red string, n int) *job {
	j := &job{ranks: n}
	for k := range operations {
		if operations[k].name == op {
			j.op = &operations[k]
		}
	}
	if err := j.choose(typ, red); err != nil {
		panic(err)
	}
	return j
}

// The mean must be whole, and no result may need more digits than bfloat16 has.
func TestInputsGiveExactResults(t *testing.T) {
	for n := 1; n <= mostRanks; n++ {
		for i := range period {
			sum, avg, prod := 0, 0, 1
			for r := range n {
				sum += reductions[0].input(r, i, n)
				prod *= reductions[1].input(r, i, n)
				v := balanced(r, i, n)
				avg += v
				if v < 0 || v > 5 {
					t.Fatalf("mean of %d ranks: rank %d gives %d", n, r, v)
				}
			}
			if sum > 256 || prod > 256 || avg%n != 0 || avg/n != 1+i&3 {
				t.Fatalf("%d ranks, index %d: sum %d, product %d, total %d", n, i, sum, prod, avg)
			}
		}
	}
}

func TestHalf(t *testing.T) {
	for x, want := range map[int]uint64{0: 0, 1: 0x3c00, 2: 0x4000, 3: 0x4200, 192: 0x5a00, 256: 0x5c00} {
		if got := half(x); got != want {
			t.Errorf("%d: %#x, want %#x", x, got, want)
		}
	}
	if bfloat(192) != 0x4340 || float32b(3) != uint64(math.Float32bits(3)) {
		t.Error("bfloat16 or float32")
	}
}

// A single wrong element is counted, wherever it stands; equal ranks would hide a swap, so inputs of two ranks differ.
func TestEveryElementIsLookedAt(t *testing.T) {
	j := jobOf("all_reduce", "float", "sum", 3)
	want := j.expected(origin{sum: true})
	b := make([]byte, 4*1000)
	want.fill(b)
	if n := want.wrong(b, 4); n != 0 {
		t.Fatalf("%d wrong in what is right", n)
	}
	for k := range 1000 {
		b[4*k+k%4] ^= 1
		if n := want.wrong(b, 4); n != 1 {
			t.Fatalf("element %d: %d wrong, want 1", k, n)
		}
		b[4*k+k%4] ^= 1
	}
	for _, op := range []string{"all_gather", "alltoall"} {
		g := jobOf(op, "int8", "sum", 3)
		if string(g.sent(0, 0)) == string(g.sent(1, 0)) || string(g.sent(0, 0)) == string(g.sent(0, 1)) {
			t.Error("two ranks or parts send the same")
		}
	}
}
