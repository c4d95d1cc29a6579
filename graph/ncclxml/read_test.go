package ncclxml_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

// base is a sound host; each case puts one slip into it.
const base = `<system version="1">
 <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
  <pci busid="0000:10:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
   <pci busid="0000:11:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
    <gpu dev="0" sm="80" rank="0" gdr="1">
     <nvlink target="0000:12:00.0" count="4" tclass="0x030200"/>
    </gpu>
   </pci>
   <pci busid="0000:12:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
    <gpu dev="1" sm="80" rank="1" gdr="1">
     <nvlink target="0000:11:00.0" count="4" tclass="0x030200"/>
    </gpu>
   </pci>
   <pci busid="0000:13:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
    <nic>
     <net name="a" dev="0" speed="200000" gdr="1"/>
     <net name="b" dev="1" speed="200000" gdr="1"/>
    </nic>
   </pci>
  </pci>
 </cpu>
</system>
`

func TestSoundFileHasNoFaults(t *testing.T) {
	m, report := mustRead(t, base)
	if len(report.Faults)+len(report.Notes) > 0 {
		t.Errorf("%v %v", report.Faults, report.Notes)
	}
	if g := topo.Build(m); len(g.GPUs) != 2 || len(g.Ports) != 2 {
		t.Errorf("%d GPUs, %d ports", len(g.GPUs), len(g.Ports))
	}
}

// Every slip is reported once, with its line, and only it is left out: gpus, ports and the bandwidth from GPU 0 to 1 say what is left.
func TestSlips(t *testing.T) {
	for _, c := range []struct {
		old, new    string
		line        int
		says        string
		gpus, ports int
		bw          float64
	}{
		{`target="0000:12:00.0"`, `target="0000:11:00.0"`, 6, "leads to itself", 2, 2, 48},
		{`target="0000:12:00.0" count="4"`, `target="0000:12:00.0" count="9"`, 6, "4 counted in each direction", 2, 2, 80},
		{`target="0000:12:00.0" count="4"`, `target="0000:12:00.0" count="40"`, 6, "more than the 12", 2, 2, 80},
		{`target="0000:12:00.0" count="4"`, `target="0000:12:00.0" count="many"`, 6, `count="many"`, 2, 2, 48},
		{`target="0000:12:00.0" count="4"`, `target="0000:12:00.0" count="0"`, 6, "counts 0 links", 2, 2, 48},
		{`target="0000:12:00.0"`, `target="0000:13:00.0"`, 6, "which is no GPU", 2, 2, 48},
		{`target="0000:12:00.0"`, `target="right"`, 6, "no bus id", 2, 2, 48},
		{`target="0000:12:00.0"`, ``, 6, "has no target", 2, 2, 48},
		{`<gpu dev="0" sm="80"`, `<gpu dev="0"`, 5, "has no sm", 2, 2, 80},
		{`rank="1"`, `rank="0"`, 10, "rank 0 is there again", 1, 2, 0},
		{`rank="1"`, ``, 10, "has no rank", 1, 2, 0},
		{`<gpu dev="1"`, `<gpu dev="0"`, 10, "both have dev 0", 2, 2, 80},
		{`<net name="b" dev="1"`, `<net name="b" dev="0"`, 17, "is taken for 1", 2, 2, 80},
		{`<net name="b" dev="1"`, `<net name="b"`, 17, "has no dev", 2, 1, 80},
		{`dev="1" speed="200000"`, `dev="1" speed="0"`, 17, "counts as 10 Gb/s", 2, 2, 80},
		{`dev="1" speed="200000"`, `dev="1" speed="200000000"`, 17, "more than any port has", 2, 2, 80},
		{`dev="1" speed="200000"`, `dev="1" speed="99999999999999999999"`, 17, "no number from", 2, 2, 80},
		{`vendor="GenuineIntel"`, ``, 2, "has no vendor", 2, 2, 80},
		{`vendor="GenuineIntel"`, `vendor="Intel"`, 2, "which is not known", 2, 2, 80},
		{`arch="x86_64"`, ``, 2, "has no arch", 2, 2, 80},
		{`arch="x86_64"`, `arch="amd64"`, 2, `arch "amd64"`, 2, 2, 80},
		{`modelid="143"`, ``, 2, "has no familyid or modelid", 2, 2, 80},
		{`numaid="0"`, ``, 2, "has no numaid", 2, 2, 80},
		{`numaid="0"`, `numaid="0" affinity="0-7"`, 2, "no mask of processors", 2, 2, 80},
		{`class="0x060400" link_speed="32.0 GT/s PCIe"`, `class="0x060400" link_speed="fast"`, 3, "begins with no known speed", 2, 2, 80},
		{`link_speed="32.0 GT/s PCIe" link_width="16"`, `link_speed="32 GT/s" link_width="7"`, 3, "7 lanes", 2, 2, 80},
		{`link_speed="32.0 GT/s PCIe"`, `link_speed="32.0 GT/s"`, 3, "begins with no known speed", 2, 2, 80},
		{`class="0x060400"`, `class="0x010802"`, 3, "which is not known", 2, 2, 80},
		{`class="0x060400"`, ``, 3, "has no class", 2, 2, 80},
		{`busid="0000:12:00.0"`, `busid="twelve"`, 9, "with it 1 GPU and 0", 1, 2, 0},
		{`busid="0000:12:00.0"`, `busid="0000:10:00.0"`, 9, "is there again", 2, 2, 48},
		{`</nic>`, `</nic><pci busid="0000:14:00.0" class="0x030200"><gpu dev="2" sm="80" rank="2"/></pci>`, 18, "stands below a NIC", 2, 2, 80},
		{`</nic>`, `</nic><gpu dev="2" sm="80" rank="2"/>`, 14, "NCCL takes it for a NIC", 3, 2, 80},
		{`</nic>`, `</nic><nic><net dev="7" speed="1000"/></nic>`, 18, "a second <nic>", 2, 2, 80},
		{` </cpu>`, ` <gpu dev="2" sm="80" rank="2"/></cpu>`, 21, "<gpu> stands in <cpu>", 2, 2, 80},
		{` </cpu>`, ` <disk/></cpu>`, 21, "no element of a topology", 2, 2, 80},
		{` </cpu>`, ` </cpu><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"/>`, 21, "is there twice", 2, 2, 80},
		{`version="1"`, `version="9"`, 1, "version \"9\"", 2, 2, 80},
	} {
		if !strings.Contains(base, c.old) {
			t.Fatalf("no %s to replace", c.old)
		}
		m, report := mustRead(t, strings.Replace(base, c.old, c.new, 1))
		var found []topo.Fault
		for _, f := range report.Faults {
			if f.Line == c.line && strings.Contains(f.What, c.says) {
				found = append(found, f)
			}
			if f.Remedy == "" {
				t.Errorf("%s: no remedy", f.What)
			}
		}
		if len(found) != 1 {
			t.Errorf("%s: want a fault in line %d that says %q, got %v", c.new, c.line, c.says, report.Faults)
		}
		g := topo.Build(m)
		bw := 0.0
		if len(g.GPUs) > 1 {
			bw = path.New(g).Between(g.GPUs[0], g.GPUs[1]).Bandwidth
		}
		if len(g.GPUs) != c.gpus || len(g.Ports) != c.ports || bw != c.bw {
			t.Errorf("%s: %d GPUs, %d ports, %g GB/s; want %d, %d, %g", c.new, len(g.GPUs), len(g.Ports), bw, c.gpus, c.ports, c.bw)
		}
	}
}

// A text that begins like a speed counts as that speed, whatever follows.
func TestSpeedCountsByItsBeginning(t *testing.T) {
	_, report := mustRead(t, strings.ReplaceAll(base, "32.0 GT/s PCIe", "32 GT/s PCIe/s"))
	if len(report.Faults) > 0 {
		t.Error(report.Faults)
	}
}

func TestNotTopologies(t *testing.T) {
	for text, says := range map[string]string{
		"":                               "no element",
		"hello":                          "no element",
		base[:400]:                       "cut off",
		"<graphs version=\"1\"/>":        "NCCL_GRAPH_FILE",
		"<a/>":                           "not <system>",
		"<system/><system/>":             "a second root",
		"<system version=1>":             "line 1: this is not XML",
		"<system>\n<cpu>\n</system>":     "line 3: this is not XML",
		strings.Repeat("<pci>", 100_000): "nested more than 64 deep",
	} {
		_, _, err := ncclxml.Read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v, want %q", text, err, says)
		}
	}
}

// A file that is too long is refused before it is read; what does not know its length when it has been read so far.
func TestLongFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "long.xml")
	if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 1<<40)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, read := range []func(io.Reader) error{
		func(in io.Reader) error { _, _, err := ncclxml.Read(in); return err },
		func(in io.Reader) error { _, _, err := ncclxml.ReadSearches(in, nil); return err },
	} {
		if err := read(f); err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
			t.Errorf("a long file: %v", err)
		}
		if at, err := f.Seek(0, io.SeekCurrent); at != 0 || err != nil {
			t.Errorf("%d bytes were read, %v", at, err)
		}
	}
	if _, _, err := ncclxml.Read(io.LimitReader(f, 65<<20)); err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Errorf("a long stream: %v", err)
	}
}

// NCCL ends at 256 elements; nothing here depends on how many there are.
func TestManyNodes(t *testing.T) {
	var ports strings.Builder
	for n := 2; n < 1000; n++ {
		fmt.Fprintf(&ports, "<net dev=\"%d\" speed=\"100000\"/>\n", n)
	}
	m, report := mustRead(t, strings.Replace(base, "</nic>", ports.String()+"</nic>", 1))
	if g := topo.Build(m); len(g.Ports) != 1000 || len(report.Faults) > 0 {
		t.Errorf("%d ports, faults %v", len(g.Ports), report.Faults)
	}
}

// What is written is read as the same machine.
func TestRoundTrip(t *testing.T) {
	for _, file := range machines(t) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, _ := mustRead(t, strings.Replace(string(b), `numaid="0"`, `numaid="0" affinity="ff" host_hash="0x1&quot;"`, 1))
		var out bytes.Buffer
		if err := ncclxml.Write(&out, m); err != nil {
			t.Fatal(err)
		}
		again, report := mustRead(t, out.String())
		if d := cmp.Diff(m, again, ignoreLines); d != "" || len(report.Faults) > 0 {
			t.Errorf("%s: %v %s", file, report.Faults, d)
		}
	}
}

var ignoreLines = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Line" }, cmp.Ignore())

func machines(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../testdata/machines/*.xml")
	if err != nil || len(files) == 0 {
		t.Fatal("no machines", err)
	}
	return files
}

func mustRead(t testing.TB, text string) (*topo.Machine, *topo.Report) {
	t.Helper()
	m, report, err := ncclxml.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m, report
}

// Whatever the text is, there is a machine or an error; a machine makes a graph with paths, and is written so that it reads again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(base))
	for _, file := range machines(f) {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, _, err := ncclxml.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		if g := topo.Build(m); len(g.Nodes) < 300 {
			path.New(g)
		}
		var out bytes.Buffer
		if err := ncclxml.Write(&out, m); err != nil {
			t.Fatal(err)
		}
		again, _, err := ncclxml.Read(&out)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m, again, ignoreLines, cmpopts.EquateEmpty()); d != "" {
			t.Error(d)
		}
	})
}
