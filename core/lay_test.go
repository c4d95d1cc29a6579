package core

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/arrange"
	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/proto/wire"
)

const recorded = "../graph/testdata/machines/"

// onMachines are spread over hosts, one after the other, each with a topology file; "" for none.
func onMachines(id []byte, n, r int, files ...string) *InitSpec {
	s := spec(id, n, r, true)
	s.Began = func(c *Comm) {
		v := *c.settings
		h := r * len(files) / n
		if v.HostID = fmt.Sprint("host ", h); files[h] != "" {
			v.TopoFile = recorded + files[h] + ".xml"
		}
		c.settings = &v
	}
	return s
}

// linked are the pairs of GPUs of a recorded machine, by number, that NVLinks join.
func linked(t *testing.T, file string) map[[2]int]bool {
	t.Helper()
	f, err := os.Open(recorded + file + ".xml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m, _, err := ncclxml.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	number := map[string]int{}
	m.GPUs(func(d *topo.Device, g *topo.GPU) { number[d.BusID] = g.Number })
	all := map[[2]int]bool{}
	m.GPUs(func(d *topo.Device, g *topo.GPU) {
		for _, l := range g.NVLinks {
			all[[2]int{g.Number, number[l.Target]}] = true
		}
	})
	return all
}

// summing makes the ranks of specs and has them sum by rings.
func summing(t *testing.T, n int, spec func(id []byte, r int) *InitSpec) *world {
	t.Helper()
	id := ids.ID()
	w := &world{t: t, comms: make([]*Comm, n)}
	w.must(w.each(func(r int) (err error) {
		w.comms[r], err = initRank(spec(id, r))
		return err
	}))
	w.must(w.each(func(r int) error { return summed(w.comms[r]) }))
	return w
}

func summed(c *Comm) error {
	p := (&shape{fn: coll.AllReduce, typ: coll.Float32, red: coll.Sum, n: c.n, count: 200000, seed: 3}).part(c.rank)
	if err := do(c, &p.call); err != nil {
		return err
	}
	return p.check()
}

// The links of the machine in NCCL_TOPO_FILE decide how rings go on one host, in the communicator and in a part of it, where ranks keep
// their GPUs. What is written is what is used, and does the same as NCCL_GRAPH_FILE.
func TestLinksDecide(t *testing.T) {
	const n, file = 8, "v100-cube-mesh"
	near := linked(t, file)
	said := logged(t, "INFO")
	testkit.Setenv(t, "NCCL_ALGO", "ring")
	testkit.Setenv(t, "NCCL_TOPO_FILE", recorded+file+".xml")
	dump := filepath.Join(t.TempDir(), "graph.xml")
	testkit.Setenv(t, "NCCL_GRAPH_DUMP_FILE", dump)
	w := summing(t, n, func(id []byte, r int) *InitSpec { return spec(id, n, r, true) })
	orders := w.comms[5].agreed.found.Orders
	if len(orders) < 4 {
		t.Fatalf("%v", orders)
	}
	for _, order := range orders {
		for k, r := range order {
			if next := order[(k+1)%n]; !near[[2]int{r, next}] {
				t.Errorf("ring %v goes from rank %d to %d without an NVLink", order, r, next)
			}
		}
	}
	for _, says := range []string{fmt.Sprintf("by the links between GPUs: %d channels of", len(orders)), "; found by rank 0 in ",
		fmt.Sprintf("ring on %d channels", len(orders))} {
		if !strings.Contains(said(), says) {
			t.Errorf("%q is not said in\n%s", says, said())
		}
	}
	if text, err := os.ReadFile(dump); err != nil || !strings.Contains(string(text), `speedintra="20" speedinter="20"`) ||
		!strings.Contains(string(text), `typeintra="NVL"`) {
		t.Errorf("%v: rings of NVLinks are written as %.200s", err, text)
	}
	kept := filepath.Join(t.TempDir(), "kept.xml")
	if err := os.Rename(dump, kept); err != nil { // parts write theirs
		t.Fatal(err)
	}
	w.must(w.each(func(r int) error {
		child, err := splitOff(w.comms[r], int32(r%2), 0)
		if err != nil {
			return err
		}
		if got := child.agreed.devices; !slices.Equal(got, []int{r % 2, r%2 + 2, r%2 + 4, r%2 + 6}) {
			return fmt.Errorf("the part of rank %d is on GPUs %v", r, got)
		}
		if !strings.Contains(child.agreed.found.By, "links between GPUs") {
			return fmt.Errorf("the part of rank %d goes by %s", r, child.agreed.found.By)
		}
		if err := summed(child); err != nil {
			return err
		}
		return child.Destroy()
	}))
	w.destroy()
	testkit.Setenv(t, "NCCL_GRAPH_DUMP_FILE", "")
	testkit.Setenv(t, "NCCL_GRAPH_FILE", kept)
	w = summing(t, n, func(id []byte, r int) *InitSpec { return spec(id, n, r, true) })
	if got := w.comms[2].agreed.found; !slices.EqualFunc(got.Orders, orders, slices.Equal) || !strings.Contains(got.By, "NCCL_GRAPH_FILE") {
		t.Errorf("%v by %s and the file that was written, want %v", got.Orders, got.By, orders)
	}
	w.destroy()
}

// Hosts that are not alike, and one of which nothing is known: all ranks go by the same rings, which cross each host's boundary once.
func TestLinksOfUnequalHosts(t *testing.T) {
	for name, files := range map[string][]string{
		"two hosts":                {"amd-nvlink-pairs", "gh200-four-modules"},
		"one that is not known":    {"amd-nvlink-pairs", ""},
		"three, two of them alike": {"v100-cube-mesh", "pcie-8gpu-1nic", "v100-cube-mesh"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 3 * len(files)
			testkit.Setenv(t, "NCCL_ALGO", "ring")
			w := summing(t, n, func(id []byte, r int) *InitSpec { return onMachines(id, n, r, files...) })
			want := &w.comms[0].agreed
			if !strings.Contains(want.found.By, "the links between GPUs") {
				t.Errorf("by %s", want.found.By)
			}
			for _, c := range w.comms {
				if got := c.agreed.found; !slices.EqualFunc(got.Orders, want.found.Orders, slices.Equal) {
					t.Errorf("rank %d: %v, rank 0: %v", c.rank, got.Orders, want.found.Orders)
				}
			}
			for _, order := range want.found.Orders {
				var hosts []int
				for _, r := range order {
					hosts = append(hosts, r/3)
				}
				if len(slices.Compact(hosts)) != len(files) {
					t.Errorf("%v leaves a host and comes back", order)
				}
			}
			w.destroy()
		})
	}
}

// A solver that lies is found out by every rank, and named.
func TestLyingSolver(t *testing.T) {
	testkit.Setenv(t, "NCCL_TOPO_FILE", recorded+"v100-cube-mesh.xml")
	honest := solveRings
	t.Cleanup(func() { solveRings = honest })
	solveRings = func(a *arrange.Arrangement) arrange.Solution {
		s := honest(a)
		s.Packings[0].Rings[0].Weight *= 1.5
		return s
	}
	const n = 4
	id := ids.ID()
	w := &world{t: t, comms: make([]*Comm, n)}
	for r, err := range w.each(func(r int) error {
		_, err := initRank(spec(id, n, r, true))
		return err
	}) {
		wantError(t, err, RemoteError, fmt.Sprintf("rank %d does not take the rings that rank 0 has found", r), "carries", "HCCL_TOPO_SCOPE=none")
	}
}

// A description that is not the one that was announced names its sender.
func TestChangedDescription(t *testing.T) {
	d := hostDescription(recorded + "gb10.xml")
	if m, err := unpack(d.packed, d.sum); err != nil || len(m.CPUs) == 0 {
		t.Fatal(err)
	}
	cut := d.packed[:len(d.packed)-1]
	if _, err := unpack(cut, d.sum); err == nil {
		t.Error("a description that is cut short was taken")
	}
	if _, err := unpack(cut, sha256.Sum256(cut)); err == nil {
		t.Error("a description that was cut short before it was summed up was taken")
	}
}

// Whatever peers tell of their hosts and whatever one has solved, nothing panics, and orders hold each rank once.
func FuzzLay(f *testing.F) {
	text, err := os.ReadFile(recorded + "amd-nvlink-pairs.xml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text), []byte(nil))
	f.Add("<system version=\"1\"><cpu numaid=\"0\"/></system>", (&wire.Solution{Width: 1, Counts: []uint16{1}}).Append(nil))
	f.Fuzz(func(t *testing.T, text string, solved []byte) {
		b := wire.PackText(text)
		m, err := unpack(b, sha256.Sum256(b))
		if err != nil {
			return
		}
		peers := make([]wire.Peer, 4)
		for r := range peers {
			peers[r].BootID, peers[r].Described = fmt.Sprint(r/3), [32]byte{1}
		}
		a := agreement{scope: cost.All, hosts: map[[32]byte]*topo.Machine{{1}: m}}
		all := a.arrange(peers)
		found := all.Near()
		var s wire.Solution
		if all.Searches() && s.Decode(solved) == nil {
			if r, err := all.Take(solutionOf(&s)); err == nil {
				found = r
			}
		}
		if err := a.use(found); err != nil {
			t.Error(err)
		}
	})
}
