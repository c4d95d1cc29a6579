package ncclxml_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

// rings are two opposite rings over two pairs of GPUs, as a vendor ships them, and a search that found nothing.
const rings = `<graphs version="1">
 <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="12" speedinter="12" latencyinter="0" 
  typeintra="SYS" typeinter="PIX" samechannels="0">
  <channel>
   <gpu dev="0"/>
   <gpu dev="0x1"/>
   <gpu dev="2"/>
   <gpu dev="3"/>
  </channel>
  <channel>
   <net dev="0"/>
   <gpu dev="0"/>
   <gpu dev="3"/>
   <gpu dev="2"/>
   <gpu dev="1"/>
   <net dev="0"/>
  </channel>
 </graph>
 <graph id="3" pattern="5" crossnic="0" nchannels="0" speedintra="0" speedinter="0" latencyinter="0" 
  typeintra="LOC" typeinter="LOC" samechannels="0"/>
</graphs>
`

func pairs(t testing.TB) *topo.Graph {
	t.Helper()
	b, err := os.ReadFile("../testdata/machines/amd-nvlink-pairs.xml")
	if err != nil {
		t.Fatal(err)
	}
	m, _ := mustRead(t, string(b))
	return topo.Build(m)
}

func TestGraphFile(t *testing.T) {
	all, report, err := ncclxml.ReadSearches(strings.NewReader(rings), pairs(t))
	if err != nil || len(report.Faults) > 0 {
		t.Fatal(err, report)
	}
	want := []ncclxml.Search{{Line: 2, ID: ncclxml.RingID, Pattern: ncclxml.Ring, Intra: 12, Inter: 12,
		TypeIntra: path.SYS, TypeInter: path.PIX,
		Channels: []ncclxml.Channel{{Line: 4, In: -1, Out: -1, GPUs: []int{0, 1, 2, 3}}, {Line: 10, In: 0, Out: 0, GPUs: []int{0, 3, 2, 1}}}},
		{Line: 19, ID: ncclxml.NVLSID, Pattern: ncclxml.NVLS}}
	if d := cmp.Diff(want, all); d != "" {
		t.Error(d)
	}
}

// A channel that cannot be is left out, and the rest is kept.
func TestGraphFileSlips(t *testing.T) {
	for _, c := range []struct {
		old, new string
		line     int
		says     string
		channels int
	}{
		{`<gpu dev="2"/>`, `<gpu dev="0"/>`, 4, "passes GPU 0 twice", 1},
		{`<gpu dev="2"/>`, ``, 4, "misses GPU 2", 1},
		{`<gpu dev="2"/>`, `<gpu dev="2"/><gpu dev="9"/>`, 4, "passes 5 GPUs where the host has 4", 1},
		{`<gpu dev="2"/>`, `<net dev="0"/>`, 7, "<net> at place 2", 1},
		{`<gpu dev="2"/>`, `<gpu/>`, 7, "<gpu> at place 2", 1},
		{`<net dev="0"/>`, `<net dev="5"/>`, 10, "port 5, which the host does not have", 1},
		{`<channel>`, `<channel/><channel>`, 4, "passes no GPU", 2},
		{`nchannels="2"`, `nchannels="3"`, 2, "nchannels is 3, but there are 2", 2},
		{`typeintra="SYS"`, `typeintra="FAR"`, 2, `"FAR", which is no type`, 2},
		{`id="0"`, `id="17"`, 2, "without a known id", 0},
		{`id="3"`, `id="0"`, 19, "first in line 2", 2},
		{`version="1"`, `version="2"`, 1, `version "2"`, 2},
		{`<channel>`, `<ring/><channel>`, 4, "<ring> in <graph>", 2},
	} {
		if !strings.Contains(rings, c.old) {
			t.Fatalf("no %s to replace", c.old)
		}
		all, report, err := ncclxml.ReadSearches(strings.NewReader(strings.Replace(rings, c.old, c.new, 1)), pairs(t))
		if err != nil {
			t.Fatal(err)
		}
		found, channels := false, 0
		for _, f := range report.Faults {
			found = found || f.Line == c.line && strings.Contains(f.What, c.says) && f.Remedy != ""
		}
		for _, s := range all {
			channels += len(s.Channels)
		}
		if !found || channels != c.channels {
			t.Errorf("%s: %d channels, faults %v; want %d and line %d: %s", c.new, channels, report.Faults, c.channels, c.line, c.says)
		}
	}
	if _, _, err := ncclxml.ReadSearches(strings.NewReader(base), nil); err == nil || !strings.Contains(err.Error(), "not <graphs>") {
		t.Errorf("a topology was taken for a graph file: %v", err)
	}
}

func FuzzReadSearches(f *testing.F) {
	f.Add([]byte(rings))
	f.Add([]byte(strings.Replace(rings, "<channel>", `<channel weight="7.5">`, 1)))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, _, err := ncclxml.ReadSearches(bytes.NewReader(text), nil)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := ncclxml.WriteSearches(&out, all); err != nil {
			t.Fatal(err)
		}
		again, report, err := ncclxml.ReadSearches(&out, nil)
		if d := cmp.Diff(all, again, ignoreLines); err != nil || d != "" || len(report.Faults) > 0 {
			t.Error(err, report, d)
		}
	})
}
