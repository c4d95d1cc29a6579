package ncclxml_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/path"
)

func TestEqualKeepsMost(t *testing.T) {
	for _, c := range []struct {
		weights []float64
		most    int
		each    float64
		counts  []int
	}{
		{[]float64{12, 12}, 32, 12, []int{1, 1}},
		{[]float64{50, 25, 12.5, 50}, 16, 12.5, []int{4, 2, 1, 4}},
		{[]float64{34.8, 13.2}, 4, 11.6, []int{3, 1}},
		{[]float64{34.8, 13.2}, 1, 34.8, []int{1, 0}},
		{nil, 4, 0, []int{}},
		{[]float64{0, 0}, 4, 0, []int{0, 0}},
	} {
		each, counts := ncclxml.Equal(c.weights, c.most)
		if math.Abs(each-c.each) > 1e-9 || !slices.Equal(counts, c.counts) {
			t.Errorf("%v with %d channels: %g %v, want %g %v", c.weights, c.most, each, counts, c.each, c.counts)
		}
	}
}

// Files have whole MB/s, and never more than there is.
func TestWhole(t *testing.T) {
	for gbps, want := range map[float64]float64{20: 20, 20.60049: 20.6, 11.9999999: 12, 41.19961: 41.199, 0.05123: 0.05123} {
		if got := ncclxml.Whole(gbps); got != want {
			t.Errorf("%v is written as %v, want %v", gbps, got, want)
		}
	}
}

// Channels never claim more than the weights, and are as many as allowed.
func TestEqualHolds(t *testing.T) {
	for seed := range 200 {
		var weights []float64
		for k := range seed%7 + 1 {
			weights = append(weights, float64((seed*31+k*17)%97)/7)
		}
		for most := 1; most < 33; most += 5 {
			each, counts := ncclxml.Equal(weights, most)
			total := 0
			for k, n := range counts {
				if float64(n)*each > weights[k]*(1+1e-6) {
					t.Fatalf("%v with %d: %d of %g", weights, most, n, each)
				}
				total += n
			}
			if total > most {
				t.Fatalf("%v: %d channels, at most %d", weights, total, most)
			}
		}
	}
}

// The two opposite rings that NCCL does not find on this machine are a graph file that fits it.
func TestRingSearch(t *testing.T) {
	g := pairs(t)
	table := path.New(g)
	a, b, c, d := g.GPUs[0], g.GPUs[1], g.GPUs[2], g.GPUs[3]
	found, kept := ncclxml.RingSearch(table, []ncclxml.WeightedRing{{Weight: 12, In: -1, Out: -1, GPUs: []int{a, b, c, d}},
		{Weight: 12, In: -1, Out: -1, GPUs: []int{a, d, c, b}}}, 32)
	if got := fmt.Sprint(found.Intra, kept, found.TypeIntra, found.Same, found.CrossNIC); got != "12 24 SYS false 0" {
		t.Error(got)
	}
	var file bytes.Buffer
	if err := ncclxml.WriteSearches(&file, []ncclxml.Search{found}); err != nil {
		t.Fatal(err)
	}
	all, report, err := ncclxml.ReadSearches(&file, g)
	if err != nil || len(report.Faults) > 0 || len(all) != 1 || len(all[0].Channels) != 2 {
		t.Fatal(err, report, all)
	}
	port := g.Ports[0]
	found, _ = ncclxml.RingSearch(table, []ncclxml.WeightedRing{{Weight: 6, In: port, Out: port, GPUs: []int{a, b, c, d}}}, 32)
	if c := found.Channels[0]; c.In != 0 || c.Out != 0 || found.TypeInter != path.SYS || found.CrossNIC != 0 {
		t.Errorf("%+v", found)
	}
}
