package arrange_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl/graph"
	"hccl.dev/hccl/graph/arrange"
	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/topo"
)

func at(host, numa, cache int) arrange.Rank {
	return arrange.Rank{Place: graph.Place{Host: host, NUMA: numa, Cache: cache}}
}

func rings(t *testing.T, ranks []arrange.Rank, want ...[]int) arrange.Result {
	t.Helper()
	got := arrange.Rings(ranks, nil, cost.All)
	if !slices.EqualFunc(got.Orders, want, slices.Equal) {
		t.Errorf("%v by %s, want %v", got.Orders, got.By, want)
	}
	return got
}

// Without more than places, ranks of a host, a NUMA node and a cache stand together.
func TestPlaces(t *testing.T) {
	ranks := []arrange.Rank{at(0, 0, 0), at(1, 0, 0), at(0, 1, 4), at(1, 0, 0), at(0, 0, 0)}
	if got := rings(t, ranks, []int{0, 4, 2, 1, 3}); got.By != "their places" {
		t.Error(got.By)
	}
	for scope, want := range map[cost.Scope][]int{cost.LocalOnly: {0, 4, 2, 1, 3}, cost.Nothing: {0, 1, 2, 3, 4}} {
		if got := arrange.Rings(ranks, nil, scope); len(got.Orders) != 1 || !slices.Equal(got.Orders[0], want) {
			t.Errorf("scope %d: %v", scope, got.Orders)
		}
	}
}

// square gives four places of a host rates: neighbours 0-2, 2-1, 1-3, 3-0 are fast and the diagonals slow.
func square(ranks []arrange.Rank) []arrange.Rank {
	fast := map[[2]int]bool{{0, 2}: true, {2, 1}: true, {1, 3}: true, {3, 0}: true}
	for r := range ranks {
		a := ranks[r].NUMA
		for b := range 4 {
			rate := 1e9
			if fast[[2]int{a, b}] || fast[[2]int{b, a}] {
				rate = 9e9
			}
			to := cost.Rank{NUMA: b, Cache: ranks[r].Cache}.Place()
			ranks[r].Rates = append(ranks[r].Rates, arrange.Rate{To: to, BytesPerSecond: rate})
		}
	}
	return ranks
}

// Measures between all places of a host decide, nearest first; one that is missing leaves it to the places.
func TestMeasures(t *testing.T) {
	ranks := square([]arrange.Rank{at(0, 0, 0), at(0, 1, 0), at(0, 2, 0), at(0, 3, 0), at(0, 0, 0)})
	if got := rings(t, ranks, []int{0, 4, 2, 1, 3}); got.By != "measured costs" {
		t.Error(got.By)
	}
	ranks[3].Rates = ranks[3].Rates[:2]
	if got := rings(t, ranks, []int{0, 4, 1, 2, 3}); got.By != "their places" {
		t.Error(got.By)
	}
	// Between hosts the tour is open: the slow step is the one that is not taken. The other host has nothing to measure.
	line := []arrange.Rank{at(0, 0, 0), at(0, 1, 0), at(0, 2, 0), at(1, 0, 0)}
	rates := map[[2]int]float64{{0, 1}: 1e9, {1, 0}: 1e9, {0, 2}: 9e9, {2, 0}: 9e9, {1, 2}: 9e9, {2, 1}: 9e9}
	for r := range 3 {
		for b := range 3 {
			if b != r {
				line[r].Rates = append(line[r].Rates, arrange.Rate{To: cost.Rank{NUMA: b}.Place(), BytesPerSecond: rates[[2]int{r, b}]})
			}
		}
	}
	rings(t, line, []int{0, 2, 1, 3})
}

// A file's rings decide on their host, one for each channel; one that misses a rank is told and left out.
func TestFile(t *testing.T) {
	ranks := square([]arrange.Rank{at(0, 0, 0), at(0, 1, 0), at(1, 0, 0), at(0, 2, 0), at(0, 3, 0), at(1, 1, 0)})
	ranks[1].Rings = []arrange.Ring{{Line: 3, Devs: []int{3, 2, 1, 0, 7}}, {Line: 4, Devs: []int{0, 1}}, {Line: 5, Devs: []int{0, 0, 1, 2, 3}},
		{Line: 6, Devs: []int{0, 2, 1, 3}}}
	got := rings(t, ranks, []int{4, 3, 1, 0, 2, 5}, []int{0, 3, 1, 4, 2, 5})
	if len(got.Faults) != 2 || got.Faults[0].Rank != 1 || !strings.Contains(got.Faults[0].Text, "line 4: ") ||
		!strings.Contains(got.Faults[0].Text, "it passes 2 of the 4 ranks") || !strings.Contains(got.Faults[1].Text, "it passes 0 twice") ||
		got.By != "NCCL_GRAPH_FILE of rank 1, measured costs" {
		t.Errorf("%+v by %s", got.Faults, got.By)
	}
	ranks[1].Rings = ranks[1].Rings[1:2]
	if got := arrange.Rings(ranks, nil, cost.All); len(got.Faults) != 1 || strings.Contains(got.By, "FILE") {
		t.Errorf("%+v", got)
	}
}

func machine(t *testing.T, file string) *topo.Machine {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m, _, err := ncclxml.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// onGPUs are the ranks of equal hosts, one on each GPU, dealt out to the hosts in turn.
func onGPUs(m *topo.Machine, hosts int) (ranks []arrange.Rank) {
	m.GPUs(func(d *topo.Device, g *topo.GPU) {
		for h := range hosts {
			if len(d.GPUs) == 1 {
				r := at(h, -1, -1)
				r.GPU = d.BusID
				ranks = append(ranks, r)
			}
		}
	})
	return ranks
}

// On each recorded machine, for one and for two hosts: every order has each rank once, the search decides where rings can pass, and the
// same is found again from what another rank reads.
func TestRecordedMachines(t *testing.T) {
	files, err := filepath.Glob("../testdata/machines/*.xml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	searched := 0
	for _, file := range files {
		for hosts := 1; hosts <= 2; hosts++ {
			var all [2]arrange.Result
			ranks := onGPUs(machine(t, file), hosts)
			for k := range all {
				var machines arrange.Machines
				for range hosts {
					machines = append(machines, machine(t, file))
				}
				all[k] = arrange.Rings(ranks, machines, cost.All)
			}
			if !slices.EqualFunc(all[0].Orders, all[1].Orders, slices.Equal) {
				t.Errorf("%s: %v and then %v", file, all[0].Orders, all[1].Orders)
			}
			for _, order := range all[0].Orders {
				if sorted := slices.Sorted(slices.Values(order)); len(sorted) != len(ranks) || sorted[0] != 0 ||
					len(slices.Compact(sorted)) != len(ranks) {
					t.Errorf("%s: %v of %d ranks", file, order, len(ranks))
				}
			}
			if strings.Contains(all[0].By, "links") {
				searched++
			}
		}
	}
	if searched < len(files) {
		t.Errorf("the search decides %d times for %d machines", searched, len(files))
	}
}

// Four V100 of the cube mesh on one host: neighbours on the ring are joined by NVLink.
func TestRingsFollowNVLinks(t *testing.T) {
	m := machine(t, "../testdata/machines/v100-cube-mesh.xml")
	linked := map[[2]string]bool{}
	m.GPUs(func(d *topo.Device, g *topo.GPU) {
		for _, l := range g.NVLinks {
			linked[[2]string{d.BusID, l.Target}] = true
		}
	})
	ranks := onGPUs(m, 1)
	got := arrange.Rings(ranks, arrange.Machines{m}, cost.All)
	if len(got.Orders) < 2 {
		t.Fatalf("%v by %s", got.Orders, got.By)
	}
	for _, order := range got.Orders {
		for k, r := range order {
			if next := order[(k+1)%len(order)]; !linked[[2]string{ranks[r].GPU, ranks[next].GPU}] {
				t.Errorf("ring %v goes from rank %d to %d without an NVLink", order, r, next)
			}
		}
	}
}

// Ranks that share a GPU, or a host whose machine is not known, are ordered by their places.
func TestGPUsThatCannotBeSearched(t *testing.T) {
	file := "../testdata/machines/amd-nvlink-pairs.xml"
	ranks := onGPUs(machine(t, file), 1)
	if got := arrange.Rings(ranks, nil, cost.All); got.By != "their places" {
		t.Error(got.By)
	}
	if got := arrange.Rings(append(ranks, ranks[0]), arrange.Machines{machine(t, file)}, cost.All); got.By != "their places" {
		t.Error(got.By)
	}
}
