package cost_test

import (
	"os"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

func graphOf(t *testing.T, name string) *topo.Graph {
	t.Helper()
	f, err := os.Open("../testdata/machines/" + name + ".xml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	m, _, err := ncclxml.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return topo.Build(m)
}

var places = []cost.Rank{{Host: 0, NUMA: 0, Switch: "a"}, {Host: 0, NUMA: 0, Switch: "a"}, {Host: 0, NUMA: 1, Switch: "a"},
	{Host: 1, NUMA: 0, Switch: "a"}, {Host: 2, NUMA: 0, Switch: "b"}}

// The scope is the switch for how much of the topology counts.
func TestWeights(t *testing.T) {
	for scope, want := range map[cost.Scope][]float64{
		cost.All:       {0, 1, 3, 15, 30},
		cost.LocalOnly: {0, 1, 3, 15, 15},
		cost.Nothing:   {0, 1, 1, 1, 1},
	} {
		for b, c := range cost.OfPlaces(places, scope).Cells[0] {
			if c.Cost != want[b] || c.Source != cost.Weight {
				t.Errorf("scope %d: rank 0 to %d costs %g, want %g", scope, b, c.Cost, want[b])
			}
		}
	}
}

// Where links are known, a cost is what a byte takes: of a pair of two hosts of 8 GPUs on NVLink with 400 Gb ports behind PCIe 5.0.
func TestRates(t *testing.T) {
	table := path.New(graphOf(t, "h100-nvswitch-8nic"))
	m := cost.OfHosts(table, 2, cost.All)
	if len(m.Ranks) != 16 || m.Ranks[9].Host != 1 || m.Ranks[9].Device != "gpu1" || m.Ranks[9].NUMA != 0 || m.Ranks[12].NUMA != 1 {
		t.Fatalf("%+v", m.Ranks)
	}
	for _, c := range []struct {
		from, to int
		bw       float64
		typ      string
	}{{0, 0, 0, ""}, {0, 1, 370.8, "NVL"}, {0, 8, 48, "NET"}, {3, 12, 48, "NET"}} {
		got := m.Cells[c.from][c.to]
		if got.Bandwidth != c.bw || got.Type != c.typ || c.bw > 0 && got.Cost != cost.Unit/c.bw {
			t.Errorf("%d to %d: %+v, want %g GB/s %s", c.from, c.to, got, c.bw, c.typ)
		}
	}
	if far := cost.OfHosts(table, 2, cost.LocalOnly).Cells[0]; far[1].Source != cost.Rate || far[8].Cost != cost.OneSwitch {
		t.Errorf("%+v %+v", far[1], far[8])
	}
	if none := cost.OfHosts(table, 2, cost.Nothing).Cells[0]; none[1].Cost != none[8].Cost {
		t.Errorf("%+v %+v", none[1], none[8])
	}
}

// GPUs that NCCL leaves to the network cost what the network takes.
func TestCutPairsGoByNetwork(t *testing.T) {
	m := cost.OfHosts(path.New(graphOf(t, "full-mesh-8gpu")), 1, cost.All)
	if c := m.Cells[0][1]; c.Type != "NET" || c.Bandwidth != 48 {
		t.Errorf("%+v", c)
	}
}

// Measures replace what was assumed between ranks of a host by their places, and between hosts nothing.
func TestMeasuresAreUsed(t *testing.T) {
	found := cost.NewMeasures("x")
	for _, v := range []cost.Measured{{Rate: 0}, {Rate: -1}, {Rate: 1e16}, {Rate: 1, Latency: -1}} {
		if found.Set("a", "b", v) == nil {
			t.Errorf("%+v was taken", v)
		}
	}
	if err := found.Set("numa0/cache0", "numa1/cache0", cost.Measured{Rate: 12e9, Latency: 1e-6}); err != nil {
		t.Fatal(err)
	}
	m := cost.OfPlaces(places, cost.All)
	m.Use(found)
	for b, source := range []cost.Source{cost.Weight, cost.Weight, cost.Measure, cost.Weight, cost.Weight} {
		if c := m.Cells[1][b]; c.Source != source || source == cost.Measure && (c.Cost != 4 || c.Bandwidth != 12 || c.Latency != 1) {
			t.Errorf("rank 1 to %d: %+v", b, c)
		}
	}
	if m.Cells[2][1].Source != cost.Weight {
		t.Error("the way back was not measured")
	}
	m.Use(nil)
	if m.SetMeasure(0, 9, cost.Measured{Rate: 1}) == nil || m.SetMeasure(1, 1, cost.Measured{Rate: 1}) == nil ||
		m.SetMeasure(0, 4, cost.Measured{Rate: 24e9}) != nil || m.Cells[0][4].Cost != 2 {
		t.Errorf("%+v", m.Cells[0][4])
	}
	if got := found.From("numa0/cache0"); len(got) != 1 || got[0] != "numa1/cache0" {
		t.Error(got)
	}
}

// Measures are kept under the topology's hash, and are not believed when they are of another one, of another version, or damaged.
func TestMeasuresAreKept(t *testing.T) {
	hash := cost.Hash(graphOf(t, "amd-nvlink-pairs"))
	m := cost.NewMeasures(hash)
	for _, pair := range [][2]string{{"gpu0", "gpu1"}, {"gpu1", "gpu0"}} {
		if err := m.Set(pair[0], pair[1], cost.Measured{Rate: 12e9, Latency: 2e-6}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", "[]", strings.Replace(string(text), "12000000000", "-5", 1),
		strings.Replace(string(text), `"version": 2`, `"version": 1`, 1), strings.Replace(string(text), `"gpu0"`, `""`, 1)} {
		if _, err := cost.Decode([]byte(bad), hash); err == nil {
			t.Errorf("%.30q was taken", bad)
		}
	}
	if other := cost.Hash(graphOf(t, "gb10")); other == hash {
		t.Error("two topologies have one hash")
	} else if _, err := cost.Decode(text, other); err == nil || !strings.Contains(err.Error(), hash) {
		t.Errorf("the measures of another topology were taken: %v", err)
	}
	again, err := cost.Decode(text, hash)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := again.Of("gpu1", "gpu0"); !ok || v.Rate != 12e9 || v.Latency != 2e-6 {
		t.Errorf("%+v", v)
	}
}

// What is read is a user's file.
func FuzzDecode(f *testing.F) {
	m := cost.NewMeasures("x")
	_ = m.Set("gpu0", "gpu1", cost.Measured{Rate: 1})
	text, _ := m.Encode()
	f.Add(text)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := cost.Decode(b, "x")
		if err != nil {
			return
		}
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cost.Decode(text, "x"); err != nil {
			t.Error(err)
		}
	})
}
