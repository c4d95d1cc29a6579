package topo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/topo"
)

// What is left out changes nothing in the graph, also after it was written and read; and the names of a host are gone.
func TestBareIsTheSameGraph(t *testing.T) {
	files, err := filepath.Glob("../testdata/machines/*.xml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := ncclxml.Read(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		m.Walk(func(_ *topo.CPU, d *topo.Device) {
			d.Extra = append(d.Extra, topo.Attr{Name: "host_hash", Value: "0x77"})
			if d.NIC != nil {
				d.NIC.Ports[0].Name, d.NIC.Ports[0].GUID = "mlx5_77", "0x77"
			}
		})
		var text strings.Builder
		if err := ncclxml.Write(&text, m.Bare()); err != nil {
			t.Fatal(err)
		}
		again, report, err := ncclxml.Read(strings.NewReader(text.String()))
		if err != nil || len(report.Faults) > 0 {
			t.Errorf("%s: %v %v", file, err, report)
			continue
		}
		if cost.Hash(topo.Build(m)) != cost.Hash(topo.Build(again)) || strings.Contains(text.String(), "77\"") {
			t.Errorf("%s: the bare machine is another, or tells names:\n%s", file, text.String())
		}
	}
}
