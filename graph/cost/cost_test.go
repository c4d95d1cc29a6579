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

// Measures replace weights, are kept under the topology's hash, and are not believed when they are of another one or damaged.
func TestMeasures(t *testing.T) {
	g := graphOf(t, "amd-nvlink-pairs")
	m, fresh := cost.OfPlaces(places, cost.All), cost.OfPlaces(places, cost.All)
	if err := m.SetMeasure(0, 4, 12e9); err != nil || m.Cells[0][4].Cost != 4 || m.Cells[0][4].Source != cost.Measure {
		t.Errorf("%v %+v", err, m.Cells[0][4])
	}
	if m.SetMeasure(0, 4, 0) == nil || m.SetMeasure(0, 9, 1e9) == nil || m.Cells[0][4].Cost != 4 {
		t.Error("a measure without sense was taken")
	}
	hash := cost.Hash(g, places)
	text, err := m.EncodeMeasures(hash)
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.Replace(string(text), "12000000000", "-5", 1)
	for _, bad := range []string{"", "{", damaged, strings.Replace(string(text), `"ranks": 5`, `"ranks": 6`, 1)} {
		if err := fresh.DecodeMeasures([]byte(bad), hash); err == nil || fresh.Cells[0][4].Source != cost.Weight {
			t.Errorf("%.30q was taken: %v", bad, err)
		}
	}
	if other := cost.Hash(graphOf(t, "gb10"), places); other == hash || fresh.DecodeMeasures(text, other) == nil {
		t.Errorf("the measures of another topology were taken: %s and %s", other, hash)
	}
	if err := fresh.DecodeMeasures(text, hash); err != nil || fresh.Cells[0][4] != m.Cells[0][4] {
		t.Errorf("%v %+v", err, fresh.Cells[0][4])
	}
}
