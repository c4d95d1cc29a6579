package path_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The machines were recorded on real hosts and reduced to what decides paths; golden files show their links and the type, bandwidth
// and hops of each pair's path. The same code was compared with an independent model of NCCL's graph on all recorded files.
const machines = "../testdata/machines"

func read(t testing.TB, name string) *topo.Graph {
	t.Helper()
	f, err := os.Open(name)
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

func TestMachines(t *testing.T) {
	files, err := filepath.Glob(machines + "/*.xml")
	if err != nil || len(files) == 0 {
		t.Fatal("no machines", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".xml"), func(t *testing.T) {
			g := read(t, file)
			got, golden := links(g)+"\n"+matrix(path.New(g)), strings.TrimSuffix(file, ".xml")+".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || string(want) != got {
				t.Errorf("%v; differs from %s, got\n%s", err, golden, got)
			}
		})
	}
}

// links has a line for each link; the two directions share one where they are alike.
func links(g *topo.Graph) string {
	var b strings.Builder
	for k, l := range g.Links {
		from, to, arrow := g.Nodes[l.From].Name, g.Nodes[l.To].Name, "-"
		if l.Type == topo.LOC {
			continue
		}
		if l.Reverse < 0 || g.Links[l.Reverse].Bandwidth != l.Bandwidth {
			arrow = ">"
		} else if l.Reverse < k {
			continue
		}
		fmt.Fprintf(&b, "%s %s %s  %s %.4g\n", from, arrow, to, l.Type, l.Bandwidth)
	}
	return b.String()
}

func matrix(t *path.Table) string {
	var b strings.Builder
	ends := append(append([]int(nil), t.Graph.GPUs...), t.Graph.Ports...)
	fmt.Fprintf(&b, "%-6s", "")
	for _, to := range ends {
		fmt.Fprintf(&b, " %-12s", t.Graph.Nodes[to].Name)
	}
	for _, from := range ends {
		fmt.Fprintf(&b, "\n%-6s", t.Graph.Nodes[from].Name)
		for _, to := range ends {
			p := t.Between(from, to)
			fmt.Fprintf(&b, " %-12s", fmt.Sprintf("%s %.4g/%d", p.Type, p.Bandwidth, len(p.Links)))
		}
	}
	return strings.ReplaceAll(b.String(), " \n", "\n") + fmt.Sprintf("\ngroups %v\n", t.Groups)
}
