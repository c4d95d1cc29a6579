package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/topo"
)

func graphs(t *testing.T) map[string]*topo.Graph {
	t.Helper()
	files, err := filepath.Glob("../testdata/machines/*.xml")
	if err != nil || len(files) == 0 {
		t.Fatal("no machines", err)
	}
	all := map[string]*topo.Graph{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := ncclxml.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		all[filepath.Base(file)] = topo.Build(m)
	}
	return all
}

// Every node but the GPUs, which stand for their devices, has a box, and no box covers another one.
func TestBoxesStandApart(t *testing.T) {
	for name, g := range graphs(t) {
		p := lay(g)
		boxes := 0
		for n := range g.Nodes {
			if b, ok := p.boxes[n]; ok != (g.Nodes[n].Kind != topo.GPUNode) {
				t.Errorf("%s: %s has a box: %v", name, g.Nodes[n].Name, ok)
			} else if ok && (b.x < 0 || b.y < 0 || b.x+b.width > p.right) {
				t.Errorf("%s: the box of %s leaves the page: %+v", name, g.Nodes[n].Name, b)
			}
			boxes++
		}
		if boxes == 0 {
			t.Errorf("%s: nothing to draw", name)
		}
		for k, n := range p.order {
			for _, m := range p.order[k+1:] {
				if a, b := p.boxes[n], p.boxes[m]; a.x < b.x+b.width && b.x < a.x+a.width && a.y < b.bottom() && b.y < a.bottom() {
					t.Errorf("%s: %s and %s lie on each other: %+v %+v", name, g.Nodes[n].Name, g.Nodes[m].Name, a, b)
				}
			}
		}
	}
}

// The text is XML, and has every device and every channel.
func TestSVG(t *testing.T) {
	for name, g := range graphs(t) {
		var out bytes.Buffer
		ring := Channel{Weight: 12.5, Stops: append(append([]int(nil), g.GPUs...), g.GPUs[0])}
		if err := SVG(&out, g, []Channel{ring, ring}); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for d := xml.NewDecoder(&out); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, n := range g.Nodes {
			if n.Device != nil && !strings.Contains(text, n.Device.BusID) {
				t.Errorf("%s: no %s", name, n.Device.BusID)
			}
		}
		if arcs := strings.Count(text, "<title>channel "); arcs != 2*len(g.GPUs) {
			t.Errorf("%s: %d arcs of channels, want 2 of %d stops", name, arcs, len(g.GPUs))
		}
	}
}

// A full disk is told.
func TestSVGTellsErrors(t *testing.T) {
	for _, g := range graphs(t) {
		if err := SVG(full{}, g, nil); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%v", err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
