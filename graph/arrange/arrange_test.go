package arrange_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl/graph"
	"hccl.dev/hccl/graph/arrange"
	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/topo"
)

func at(host, numa, cache int) arrange.Rank {
	return arrange.Rank{Place: graph.Place{Host: host, NUMA: numa, Cache: cache}}
}

func rings(t *testing.T, ranks []arrange.Rank, want ...[]int) arrange.Result {
	t.Helper()
	got := arrange.New(ranks, nil, cost.All).Near()
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
		if got := arrange.New(ranks, nil, scope).Near(); len(got.Orders) != 1 || !slices.Equal(got.Orders[0], want) {
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

// Why known links decide nothing is told, and so is a file that tells nothing.
func TestWhyPlaces(t *testing.T) {
	m := machine(t, recorded+"v100-cube-mesh.xml")
	bad := at(0, 1, 0)
	bad.WhyNot = "cannot be used: no such file"
	for _, c := range []struct {
		ranks    []arrange.Rank
		machines arrange.Machines
		says     string
	}{
		{[]arrange.Rank{at(0, 0, 0), at(0, 0, 0)}, arrange.Machines{m}, "their places (there is one ring of two ranks"},
		{[]arrange.Rank{at(0, 0, 0), at(1, 0, 0), at(2, 0, 0)}, arrange.Machines{m, m, m}, "their places (no host has two ranks"},
		{[]arrange.Rank{at(0, 0, 0), bad}, nil, "their places (the NCCL_TOPO_FILE of rank 1 cannot be used: no such file)"},
	} {
		a := arrange.New(c.ranks, c.machines, cost.All)
		if got := a.Near(); a.Searches() || !strings.HasPrefix(got.By, c.says) {
			t.Errorf("by %s, want %s", got.By, c.says)
		}
	}
}

// A host with more GPUs than are searched goes by places, and says so.
func TestManyGPUs(t *testing.T) {
	m := &topo.Machine{CPUs: []*topo.CPU{{Arch: "x86_64"}}}
	var ranks []arrange.Rank
	for n := range 600 {
		link := []*topo.NVLink{{Target: "ffff:ff:00.0", Class: topo.ClassNVSwitch, Count: 1}}
		m.CPUs[0].Devices = append(m.CPUs[0].Devices, &topo.Device{BusID: fmt.Sprintf("%04x:%02x:00.0", n/200, n%200), Class: topo.ClassGPU,
			GPUs: []*topo.GPU{{Number: n, Rank: n, SM: 90, NVLinks: link}}})
		ranks = append(ranks, at(0, 0, 0))
	}
	a := arrange.New(ranks, arrange.Machines{m}, cost.All)
	s := a.Solve()
	r, err := a.Take(&s)
	if err != nil || len(r.Orders) != 1 || !strings.Contains(r.By, "their places (the links of rank 0's host: 600 GPUs on a host are more") {
		t.Errorf("%v, by %s", err, r.By)
	}
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
	if got := arrange.New(ranks, nil, cost.All).Near(); len(got.Faults) != 1 || strings.Contains(got.By, "FILE") {
		t.Errorf("%+v", got)
	}
}

// Hosts of one pod stand together, and in it those of one switch, whatever their ranks; not where hosts count as equally far.
func TestSwitches(t *testing.T) {
	var ranks []arrange.Rank
	for h, sw := range []string{"a", "b", "c", "a", "", "b", "c", ""} {
		r := at(h, 0, 0)
		if r.Switch, r.Group = sw, -1; sw == "a" || sw == "c" {
			r.Group = 4
		}
		ranks = append(ranks, r)
	}
	if got := rings(t, ranks, []int{0, 3, 2, 6, 1, 5, 4, 7}); got.By != "their places, hosts by their network switches" {
		t.Error(got.By)
	}
	if got := arrange.New(ranks, nil, cost.LocalOnly).Near(); !slices.IsSorted(got.Orders[0]) {
		t.Errorf("%v", got.Orders)
	}
}
