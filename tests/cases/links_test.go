package cases

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Hosts with links between GPUs, as files have them: what one rank packs into the links of all hosts is what all go by.

// recorded are machines of the project's own collection.
func recorded(t *testing.T, names ...string) (files []string) {
	t.Helper()
	for _, n := range names {
		f, err := filepath.Abs("../../graph/testdata/machines/" + n + ".xml")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

var (
	laid  = regexp.MustCompile(`rings go in the order (.+), by the links between GPUs: (\d+) channels? of \S+ GB/s, .*; found by rank 0 in`)
	times = regexp.MustCompile(` \((\d+) times\)$`)
)

// rings are the orders that rank 0 has told.
func rings(t *testing.T, said []string) (orders []string) {
	t.Helper()
	m := laid.FindStringSubmatch(strings.Join(said, "\n"))
	if m == nil {
		t.Fatalf("no rank says how rings were laid in\n%s", said[0])
	}
	for _, order := range strings.Split(m[1], ", ") {
		n := 1
		if many := times.FindStringSubmatch(order); many != nil {
			order = strings.TrimSuffix(order, many[0])
			if _, err := fmt.Sscan(many[1], &n); err != nil {
				t.Fatal(err)
			}
		}
		orders = append(orders, slices.Repeat([]string{order}, n)...)
	}
	if m[2] != fmt.Sprint(len(orders)) {
		t.Errorf("%d orders on %s channels", len(orders), m[2])
	}
	return orders
}

var written = regexp.MustCompile(`<channel>|<gpu dev="(\d+)"`)

// dumped are the rings of a graph file, as orders of devices.
func dumped(text string) (orders []string) {
	for _, m := range written.FindAllStringSubmatch(text, -1) {
		if m[1] == "" {
			orders = append(orders, "")
		} else {
			orders[len(orders)-1] = strings.TrimSpace(orders[len(orders)-1] + " " + m[1])
		}
	}
	return orders
}

// Two hosts and three that are not alike: every rank uses as many channels as rank 0 has told, and the file that the last rank writes
// has the devices of its host in the order of the ranks.
func TestLinksOfHosts(t *testing.T) {
	for _, names := range [][]string{{"amd-nvlink-pairs", "gh200-four-modules"}, {"v100-cube-mesh", "pcie-8gpu-1nic", "v100-cube-mesh"}} {
		t.Run(fmt.Sprintf("%d hosts", len(names)), func(t *testing.T) {
			const each = 3
			n := each * len(names)
			dump := filepath.Join(t.TempDir(), "graph.xml")
			env := []string{"NCCL_ALGO=ring", "NCCL_GRAPH_DUMP_FILE=" + dump, fmt.Sprint("NCCL_GRAPH_DUMP_FILE_RANK=", n-1)}
			said := heard(t, "INFO", env, append([]string{"once", fmt.Sprint(n)}, apart(t, 1, recorded(t, names...)...)...)...)
			if len(said) != n {
				t.Fatalf("%d of %d ranks have said anything", len(said), n)
			}
			orders := rings(t, said)
			channels := fmt.Sprintf("uses ring on %d channels", max(len(orders), 8)) // over a network at least 8
			if plans := alike(t, said); !strings.Contains(plans[0], channels) {
				t.Errorf("%s, want a plan that %s", plans[0], channels)
			}
			var want []string
			for _, o := range orders {
				var devs []string
				for _, r := range strings.Fields(o) {
					var rank int
					if fmt.Sscan(r, &rank); rank/each == len(names)-1 {
						devs = append(devs, fmt.Sprint(rank%each))
					}
				}
				want = append(want, strings.Join(devs, " "))
			}
			if got := dumped(text(t, dump)); !slices.Equal(got, want) {
				t.Errorf("rank %d has written %q, and rank 0 has told %q", n-1, got, orders)
			}
		})
	}
}
