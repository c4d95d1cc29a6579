package main

import (
	"math"
	"testing"
)

func subjectOf(t *testing.T, op, typ, red string, n int) *subject {
	t.Helper()
	found, err := subjects(operationNamed(op), typ, red, "0", n)
	if err != nil {
		t.Fatal(err)
	}
	return &found[0]
}

// The mean must be whole, and no result may need more digits than the type has; each rank counts somewhere in a sum.
func TestInputsGiveExactResults(t *testing.T) {
	for _, exact := range []int{256, 8} {
		for _, red := range reductions {
			n := mostRanks
			if exact < 256 {
				n = red.most
			}
			for ; n >= 1; n = n * 9 / 10 {
				inputsAreExact(t, &red, n, exact)
			}
		}
	}
}

func inputsAreExact(t *testing.T, red *reduction, n, exact int) {
	t.Helper()
	counts := make([]bool, n)
	for i := range period {
		acc := red.input(0, i, n, exact)
		for r := range n {
			v := red.input(r, i, n, exact)
			if counts[r] = counts[r] || v > 0; v < 0 {
				t.Fatalf("%s of %d ranks: rank %d gives %d", red.name, n, r, v)
			}
			if r > 0 {
				acc = red.join(acc, v)
			}
		}
		most := exact
		if red.name == "prod" {
			most = 256 // powers of two
		}
		if red.name == "avg" && (acc%n != 0 || exact < 256 && acc > exact) || red.name != "avg" && acc > most {
			t.Fatalf("%s of %d ranks, index %d: %d", red.name, n, i, acc)
		}
	}
	for r, used := range counts {
		if !used {
			t.Fatalf("%s of %d ranks: rank %d is nowhere", red.name, n, r)
		}
	}
}

func TestNarrowFloats(t *testing.T) {
	half, e4m3, e5m2 := narrow(15, 10), narrow(7, 3), narrow(15, 2)
	for x, want := range map[int]uint64{0: 0, 1: 0x3c00, 2: 0x4000, 3: 0x4200, 192: 0x5a00, 256: 0x5c00} {
		if got := half(x); got != want {
			t.Errorf("%d: %#x, want %#x", x, got, want)
		}
	}
	if e4m3(1) != 0x38 || e4m3(8) != 0x50 || e4m3(256) != 0x78 || e5m2(1) != 0x3c || e5m2(7) != 0x47 || e5m2(256) != 0x5c {
		t.Error("an 8-bit float")
	}
	if bfloat(192) != 0x4340 || float32b(3) != uint64(math.Float32bits(3)) {
		t.Error("bfloat16 or float32")
	}
}

// A single wrong element is counted, wherever it stands; equal ranks would hide a swap, so inputs of two ranks differ.
func TestEveryElementIsLookedAt(t *testing.T) {
	j := subjectOf(t, "all_reduce", "float", "sum", 3)
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
		g := subjectOf(t, op, "int8", "sum", 3)
		if string(g.sent(0, 0)) == string(g.sent(1, 0)) || string(g.sent(0, 0)) == string(g.sent(0, 1)) {
			t.Error("two ranks or parts send the same")
		}
	}
}
