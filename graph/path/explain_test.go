package path_test

import (
	"strings"
	"testing"

	"hccl.dev/hccl/graph/path"
)

// What a person is told about a pair: the rules that acted, and what was not taken.
func TestExplain(t *testing.T) {
	for _, c := range []struct{ machine, from, to, path, rule, other, why string }{
		{"h100-nvswitch-8nic", "gpu0", "gpu1", "NVL", "", "PHB", "PHB is worse than NVL"},
		{"h100-nvswitch-8nic", "gpu0", "gpu1", "NVL", "", "NET", "only where both GPUs have a port within PXB"},
		{"h100-nvswitch-8nic", "gpu0", "net1", "PXN", "it sends for gpu0 (PXN)", "PHB", "spares the CPU"},
		{"amd-nvlink-pairs", "gpu0", "gpu2", "SYS", "over the memory of gpu2's NUMA node", "", ""},
		{"full-mesh-8gpu", "gpu0", "gpu1", "NET", "left to the network", "", ""},
		{"gh200-four-modules", "gpu0", "net0", "P2C", "counted as P2C", "", ""},
	} {
		g := read(t, machines+"/"+c.machine+".xml")
		e := path.New(g).Explain(end(t, g, c.from), end(t, g, c.to))
		if e.Path.Type.String() != c.path || !strings.Contains(strings.Join(e.Rules, "\n"), c.rule) {
			t.Errorf("%s %s to %s: %s by %v, want %s by %q", c.machine, c.from, c.to, e.Path.Type, e.Rules, c.path, c.rule)
		}
		found := c.other == ""
		for _, o := range e.Others {
			found = found || o.Path.Type.String() == c.other && strings.Contains(o.Why, c.why)
		}
		if !found {
			t.Errorf("%s %s to %s: no other way %s because %q in %v", c.machine, c.from, c.to, c.other, c.why, e.Others)
		}
	}
}

// NVLink and PCI can be used side by side: 264 GB/s of an A100 host, 418.8 of an H100 host.
func TestWaysAddUp(t *testing.T) {
	for _, c := range []struct {
		machine, from, to string
		sum               float64
		ways              int
	}{
		{"h100-nvswitch-8nic", "gpu0", "gpu1", 370.8 + 48, 2},
		{"amd-nvlink-pairs", "gpu0", "gpu1", 240 + 12, 2},
		{"amd-nvlink-pairs", "gpu0", "gpu2", 12, 1}, // a GPU does not forward from PCI
		{"pcie-8gpu-1nic", "gpu0", "gpu1", 24, 1},
	} {
		g := read(t, machines+"/"+c.machine+".xml")
		from, to := end(t, g, c.from), end(t, g, c.to)
		ways, sum := path.New(g).Ways(from, to)
		if diff := sum - c.sum; len(ways) != c.ways || diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%s %s to %s: %d ways with %g GB/s, want %d with %g", c.machine, c.from, c.to, len(ways), sum, c.ways, c.sum)
		}
		used := map[int]float64{}
		for _, w := range ways {
			for _, l := range w.Links {
				if used[l] += w.Bandwidth; used[l] > g.Links[l].Bandwidth+1e-9 {
					t.Errorf("%s: link %d carries %g of %g GB/s", c.machine, l, used[l], g.Links[l].Bandwidth)
				}
			}
		}
	}
}
