package arrange_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl/graph"
	"hccl.dev/hccl/graph/arrange"
	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/topo"
)

const recorded = "../testdata/machines/"

func machine(t testing.TB, file string) *topo.Machine {
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

// onGPUs are ranks of hosts, as many on each as its machine has GPUs, dealt out to the hosts in turn. All name device 0, as where a
// program cannot choose.
func onGPUs(machines ...*topo.Machine) (ranks []arrange.Rank) {
	for k, added := 0, true; added; k++ {
		added = false
		for h, m := range machines {
			gpus := 0
			m.GPUs(func(*topo.Device, *topo.GPU) { gpus++ })
			if k < gpus {
				ranks, added = append(ranks, arrange.Rank{Place: graph.Place{Host: h, NUMA: -1, Cache: -1}}), true
			}
		}
	}
	return ranks
}

// solved has one rank solve and another take it.
func solved(t *testing.T, ranks []arrange.Rank, machines ...*topo.Machine) (arrange.Result, *arrange.Arrangement) {
	t.Helper()
	s := arrange.New(ranks, machines, cost.All).Solve()
	other := arrange.New(ranks, machines, cost.All)
	if !other.Searches() {
		t.Fatal("there is nothing to solve")
	}
	r, err := other.Take(&s)
	if err != nil {
		t.Fatal(err)
	}
	again := arrange.New(ranks, machines, cost.All).Solve()
	if !reflect.DeepEqual(s, again) {
		t.Errorf("%+v and then %+v", s, again)
	}
	return r, other
}

// together wants each order to have each rank once, and the ranks of a host in one piece.
func together(t *testing.T, ranks []arrange.Rank, orders [][]int) {
	t.Helper()
	for _, order := range orders {
		sorted := slices.Compact(slices.Sorted(slices.Values(order)))
		if len(order) != len(ranks) || len(sorted) != len(ranks) || sorted[0] != 0 {
			t.Errorf("%v of %d ranks", order, len(ranks))
		}
		var hosts []int
		for _, r := range order {
			hosts = append(hosts, ranks[r].Host)
		}
		if hosts = slices.Compact(hosts); len(hosts) != len(slices.Compact(slices.Sorted(slices.Values(hosts)))) {
			t.Errorf("%v leaves a host and comes back: %v", order, hosts)
		}
	}
}

// On each recorded machine, for one host and for two, and for each two that follow each other: the search decides wherever rings can pass.
func TestRecordedMachines(t *testing.T) {
	files, err := filepath.Glob(recorded + "*.xml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	packed := 0
	for k, file := range files {
		one, next := machine(t, file), machine(t, files[(k+1)%len(files)])
		for _, machines := range [][]*topo.Machine{{one}, {one, one}, {one, next, one}} {
			ranks := onGPUs(machines...)
			a := arrange.New(ranks, machines, cost.All)
			if !a.Searches() {
				continue
			}
			r, _ := solved(t, ranks, machines...)
			together(t, ranks, r.Orders)
			if r.Ways != nil {
				packed++
			} else if !strings.Contains(r.By, "no ring can pass") && !strings.Contains(r.By, "flat") {
				t.Errorf("%s on %d hosts: by %s", file, len(machines), r.By)
			}
		}
	}
	if packed < 2*len(files) {
		t.Errorf("the search decides %d times for %d machines", packed, len(files))
	}
}

// Four V100 of the cube mesh on one host: neighbours on the ring are joined by NVLink. Ranks that name GPUs are on these.
func TestRingsFollowNVLinks(t *testing.T) {
	m := machine(t, recorded+"v100-cube-mesh.xml")
	linked, bus := map[[2]string]bool{}, map[int]string{}
	m.GPUs(func(d *topo.Device, g *topo.GPU) {
		bus[g.Number] = d.BusID
		for _, l := range g.NVLinks {
			linked[[2]string{d.BusID, l.Target}] = true
		}
	})
	ranks := onGPUs(m)
	for r := range ranks {
		ranks[r].Device = len(ranks) - 1 - r
	}
	got, a := solved(t, ranks, m)
	if len(got.Orders) < 2 {
		t.Fatalf("%v by %s", got.Orders, got.By)
	}
	for _, order := range got.Orders {
		for k, r := range order {
			next := order[(k+1)%len(order)]
			if a.Device(r) != ranks[r].Device || !linked[[2]string{bus[a.Device(r)], bus[a.Device(next)]}] {
				t.Errorf("ring %v goes from rank %d on GPU %d to %d without an NVLink", order, r, a.Device(r), next)
			}
		}
	}
}

// A host without a machine goes by its places between those with one, and hosts with machines keep their rings.
func TestHostsThatAreNotKnown(t *testing.T) {
	m := machine(t, recorded+"amd-nvlink-pairs.xml")
	ranks := append(onGPUs(m), at(1, 1, 0), at(1, 0, 0), at(1, 1, 0))
	r, a := solved(t, ranks, m, nil)
	together(t, ranks, r.Orders)
	for _, order := range r.Orders {
		if k := slices.Index(order, 4); !slices.Equal(order[k:k+3], []int{4, 6, 5}) {
			t.Errorf("%v: the ranks of the host that is not known do not stand by their places", order)
		}
	}
	if a.Device(0) != 0 || a.Device(5) != -1 || r.Ways[0][1].In != -1 {
		t.Errorf("rank 0 on GPU %d, rank 5 on %d, ways %v", a.Device(0), a.Device(5), r.Ways)
	}
}

// What cannot be searched is ordered by places, and why is said.
func TestWhatIsNotSearched(t *testing.T) {
	pairs, flat := machine(t, recorded+"amd-nvlink-pairs.xml"), machine(t, recorded+"v100-vm-flat.xml")
	flat.GPUs(func(_ *topo.Device, g *topo.GPU) { g.NVLinks = nil })
	crowd := append(onGPUs(pairs), at(0, -1, -1))
	none, known, vm := arrange.Machines{}, arrange.Machines{pairs}, arrange.Machines{flat}
	for says, a := range map[string]*arrange.Arrangement{
		"their places": arrange.New(onGPUs(pairs), none, cost.All),
		"their places (rank 0's host has 5 ranks and 4 GPUs)":                    arrange.New(crowd, known, cost.All),
		"their places (rank 0's host shows a flat PCI tree, which does not tell": arrange.New(onGPUs(flat), vm, cost.All),
		"nothing: HCCL_TOPO_SCOPE=none":                                          arrange.New(onGPUs(pairs), known, cost.Nothing),
	} {
		if got := a.Near(); a.Searches() || !strings.HasPrefix(got.By, says) {
			t.Errorf("searched %v, by %s, want %s", a.Searches(), got.By, says)
		}
	}
	if a := arrange.New(onGPUs(pairs)[:2], arrange.Machines{pairs}, cost.All); a.Searches() {
		t.Error("two ranks have one ring")
	}
}

// Every lie of a solver is found out, or changes nothing.
func TestTakeRefusesLies(t *testing.T) {
	machines := []*topo.Machine{machine(t, recorded+"h100-3nic.xml"), machine(t, recorded+"amd-nvlink-pairs.xml")}
	ranks := onGPUs(machines...)
	take := func(s arrange.Solution) error {
		_, err := arrange.New(ranks, machines, cost.All).Take(&s)
		return err
	}
	for name, lie := range map[string]func(s *arrange.Solution){
		"a wider ring":          func(s *arrange.Solution) { s.Packings[0].Rings[0].Weight *= 1.01 },
		"more in all":           func(s *arrange.Solution) { s.Packings[1].Bus *= 1.01 },
		"a GPU twice":           func(s *arrange.Solution) { g := s.Packings[0].Rings[0].Segments[0].GPUs; g[0] = g[1] },
		"a GPU that is none":    func(s *arrange.Solution) { s.Packings[0].Rings[0].Segments[0].GPUs[0] = 99 },
		"a port that is none":   func(s *arrange.Solution) { s.Packings[0].Rings[0].Segments[0].In = 99 },
		"another order":         func(s *arrange.Solution) { g := s.Packings[1].Rings[0].Segments[0].GPUs; g[0], g[1] = g[1], g[0] },
		"no rings":              func(s *arrange.Solution) { s.Packings[1].Rings = nil },
		"no packing":            func(s *arrange.Solution) { s.Packings = s.Packings[:1] },
		"a packing too many":    func(s *arrange.Solution) { s.Packings = append(s.Packings, s.Packings[0]) },
		"wider channels":        func(s *arrange.Solution) { s.Width *= 1.01 },
		"channels without end":  func(s *arrange.Solution) { s.Width, s.Counts[0] = s.Width/1000, 17 },
		"no channels":           func(s *arrange.Solution) { clear(s.Counts) },
		"an order less":         func(s *arrange.Solution) { s.Counts = s.Counts[1:] },
		"other orders":          func(s *arrange.Solution) { s.Orders[3]++ },
		"a weight that is none": func(s *arrange.Solution) { s.Packings[0].Bus = -1 },
	} {
		s := arrange.New(ranks, machines, cost.All).Solve()
		if err := take(s); err != nil {
			t.Fatalf("the truth: %v", err)
		}
		if lie(&s); take(s) == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// hundreds are the hosts of a large job, each of its own kind: no two have cards of the same speed.
func hundreds(t testing.TB, hosts int) (ranks []arrange.Rank, machines arrange.Machines) {
	for h := range hosts {
		m := machine(t, recorded+"h100-nvswitch-8nic.xml")
		m.Walk(func(_ *topo.CPU, d *topo.Device) {
			if d.NIC != nil {
				d.NIC.Ports[0].Mbps = 400000 - h
			}
		})
		machines = append(machines, m)
		for range 8 {
			ranks = append(ranks, arrange.Rank{Place: graph.Place{Host: h}})
		}
	}
	return ranks, machines
}

// BenchmarkMerge merges and verifies 4,096 ranks on 512 hosts: that are alike, and that are all different.
func BenchmarkMerge(b *testing.B) {
	for _, alike := range []bool{true, false} {
		ranks, machines := hundreds(b, 512)
		if alike {
			for h := range machines {
				machines[h] = machines[0]
			}
		}
		s := arrange.New(ranks, machines, cost.All).Solve()
		b.Run(fmt.Sprintf("alike=%v", alike), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := arrange.New(ranks, machines, cost.All).Take(&s)
				if err != nil || len(r.Orders) == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}
