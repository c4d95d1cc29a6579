package path_test

import (
	"fmt"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

// What a hop costs beyond its own bytes.
func TestLoads(t *testing.T) {
	for _, c := range []struct{ machine, from, to, want string }{
		{"v100-vm-flat", "gpu0", "net0", "gpu0>cpu0 1.2 cpu0>nic0101:00:00.0 1.2"},             // an Intel bridge
		{"v100-vm-flat", "net0", "gpu0", "nic0101:00:00.0>cpu0 1 cpu0>gpu0 1 gpu0>cpu0 0.125"}, // reads by an old GPU
		{"amd-nvlink-pairs", "gpu0", "gpu2", "gpu0>cpu0 1 cpu0>cpu2 1 cpu2>gpu2 1"},            // AMD: nothing
		{"h100-nvswitch-8nic", "gpu0", "net1", // PXN
			"gpu0>nvs 1 nvs>gpu1 1 gpu1>pciffff:ff:02.0 1 pciffff:ff:02.0>nic0102:00:00.0 1"},
		{"h100-nvswitch-8nic", "net1", "gpu1", "nic0102:00:00.0>pciffff:ff:02.0 1 pciffff:ff:02.0>gpu1 1"}, // no old GPU
	} {
		g := read(t, machines+"/"+c.machine+".xml")
		var words []string
		for _, l := range path.New(g).Loads(end(t, g, c.from), end(t, g, c.to)) {
			if link := g.Links[l.Link]; link.Type != topo.LOC && link.Type != topo.NET {
				words = append(words, fmt.Sprintf("%s>%s %.4g", g.Nodes[link.From].Name, g.Nodes[link.To].Name, l.Factor))
			}
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%s %s to %s: %s, want %s", c.machine, c.from, c.to, got, c.want)
		}
	}
}

// end is a GPU or port by its name.
func end(t *testing.T, g *topo.Graph, name string) int {
	t.Helper()
	for _, n := range append(append([]int(nil), g.GPUs...), g.Ports...) {
		if g.Nodes[n].Name == name {
			return n
		}
	}
	t.Fatalf("no %s", name)
	return -1
}

// A path is a walk over links of the graph, no wider than the narrowest.
func TestPathsAreWalks(t *testing.T) {
	for _, name := range []string{"h100-nvswitch-8nic", "gh200-four-modules", "l20-broadcom-two-levels", "full-mesh-8gpu"} {
		g := read(t, machines+"/"+name+".xml")
		table := path.New(g)
		ends := append(append([]int(nil), g.GPUs...), g.Ports...)
		for _, from := range ends {
			for _, to := range ends {
				at, bw, p := from, topo.LocalBW, table.Between(from, to)
				for _, l := range p.Links {
					if g.Links[l].From != at {
						t.Fatalf("%s: the path from %s to %s has a gap at %s", name, g.Nodes[from].Name, g.Nodes[to].Name, g.Nodes[at].Name)
					}
					at, bw = g.Links[l].To, min(bw, g.Links[l].Bandwidth)
				}
				if at != to || bw != p.Bandwidth {
					t.Errorf("%s: the path from %s to %s ends at %s with %g of %g GB/s", name, g.Nodes[from].Name, g.Nodes[to].Name,
						g.Nodes[at].Name, bw, p.Bandwidth)
				}
			}
		}
	}
}
