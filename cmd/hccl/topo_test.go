package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const machines = "../../graph/testdata/machines/"

// Scripts go by the status: 1 exactly if there are faults.
func TestTopoCheck(t *testing.T) {
	cut := filepath.Join(t.TempDir(), "cut.xml")
	if err := os.WriteFile(cut, []byte("<system version=\"1\">\n<cpu numaid=\"0\""), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file           string
		status, faults int
		line           int
	}{
		{machines + "h100-nvswitch-8nic.xml", 0, 0, 0},
		{machines + "a100-uneven-bridge.xml", 1, 1, 16},
		{cut, 1, 1, 2},
	} {
		out, text, status := hccl(t, "topo", "check", c.file, "--json")
		var got checked
		if err := json.Unmarshal([]byte(out), &got); err != nil || status != c.status || len(got.Faults) != c.faults || text != "" {
			t.Fatalf("%s: status %d, %v, %s %s", c.file, status, err, out, text)
		}
		if got.File != filepath.Base(c.file) || !strings.Contains(out, `"faults": [`) {
			t.Errorf("%s: %s", c.file, out)
		}
		if c.faults > 0 && (got.Faults[0].Line != c.line || got.Faults[0].What == "" || got.Faults[0].Remedy == "") {
			t.Errorf("%s: %+v", c.file, got.Faults[0])
		}
		if plain, _, again := hccl(t, "topo", "check", c.file); again != status || c.faults > 0 && !strings.Contains(plain, got.Faults[0].What) {
			t.Errorf("%s: status %d, %s", c.file, again, plain)
		}
	}
}

// Channels that do not fit the machine are faults of the graph file.
func TestTopoChecksGraphFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph.xml")
	text := `<graphs version="1">
<graph id="0" pattern="4" nchannels="1" speedintra="12" speedinter="12" typeintra="SYS" typeinter="PIX">
<channel><gpu dev="0"/><gpu dev="1"/><gpu dev="2"/><gpu dev="3"/></channel></graph></graphs>`
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, _, status := hccl(t, "topo", "check", machines+"amd-nvlink-pairs.xml", "--graph", file); status != 0 {
		t.Errorf("status %d, %s", status, out)
	}
	out, _, status := hccl(t, "topo", "check", machines+"h100-nvswitch-8nic.xml", "--graph", file, "--json")
	var got checked
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 1 || got.Graph == nil || len(got.Faults) > 0 {
		t.Fatalf("status %d, %v, %s", status, err, out)
	}
	if f := got.Graph.Faults; len(f) == 0 || f[0].Line != 3 || !strings.Contains(f[0].What, "misses GPU") {
		t.Errorf("%+v", f)
	}
}

func TestTopoSaysWhatIsMissing(t *testing.T) {
	many := thousands(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"topo", "check"}, "name one topology file"},
		{[]string{"topo", "check", "none.xml"}, "none.xml: no such file"},
		{[]string{"topo", "chek"}, "did you mean check?"},
		{[]string{"topo", "explain", machines + "gb10.xml", "0"}, "name two ranks, not 1, and the file before them"},
		{[]string{"topo", "matrix", machines + "gb10.xml", "--ranks", "2"}, "in a file the ranks are those of its GPUs"},
		{[]string{"topo", "search", machines + "gb10.xml", "--hosts", "two"}, `"two" for "-n, --hosts" flag: want a whole number: see`},
		{[]string{"topo", "search", machines + "gb10.xml", "--hosts", "99999999999999999999"}, "want a whole number that is nearer to 0"},
		{[]string{"topo", "fabric", "fat-tree:4", "--gbps", "much"}, "flag: want a number: see"},
		{[]string{"topo", "search", many}, "3000 GPUs on a host are more than the 512 that are searched"},
		{[]string{"topo", "graph", many}, "3000 GPUs on a host are more than"},
		{[]string{"topo", many, "--svg", many + ".svg"}, "3000 GPUs on a host are more than"},
	} {
		if out, text, status := hccl(t, c.args...); status != 1 || !strings.Contains(text, c.says) || out != "" {
			t.Errorf("%v: status %d, %s, want %q", c.args, status, text, c.says)
		}
	}
}

// thousands is a file of a machine with 3,000 GPUs on one bridge, which would be searched for an hour.
func thousands(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207">`)
	for n := range 3000 {
		fmt.Fprintf(&b, `<pci busid="%04x:%02x:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="%d" sm="80" `+
			`rank="%[3]d"/></pci>`, n/200, n%200, n)
	}
	file := filepath.Join(t.TempDir(), "many.xml")
	if err := os.WriteFile(file, []byte(b.String()+"</cpu></system>"), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// A person sees tree, table and meanings; each way to name the file does.
func TestTopoShows(t *testing.T) {
	file := machines + "gh200-four-modules.xml"
	out, text, status := hccl(t, "topo", file)
	for _, says := range []string{"4 NUMA nodes, 4 GPUs, 4 network ports",
		"├─ GPU 0000:01:00.0  32.0 GT/s x16, 48 GB/s  rank 0, device 0, sm 90",
		"│  ├─ NVLink x6 to GPU 0001:01:00.0, 123.6 GB/s", "   └─ port 3  25 GB/s", "gpu0  -          NVL 123.6",
		"PXN  NVLink to the GPU beside the port"} {
		if !strings.Contains(out, says) {
			t.Errorf("no %q in %s", says, out)
		}
	}
	if again, _, _ := hccl(t, "topo", "--file", file); status != 0 || text != "" || again != out {
		t.Errorf("status %d, %s, %s", status, text, again)
	}
	_, text, status = hccl(t, "topo", machines+"a100-uneven-bridge.xml")
	if status != 0 || !strings.Contains(text, "1 fault, the first: line 16") {
		t.Errorf("status %d, %s", status, text)
	}
}

func TestTopoExplains(t *testing.T) {
	file := machines + "h100-nvswitch-8nic.xml"
	out, _, status := hccl(t, "topo", "explain", file, "0", "1")
	for _, says := range []string{"gpu0 to gpu1: NVL (NVLink), 370.8 GB/s", "gpu0 -NVL 370.8- nvs -NVL 370.8- gpu1", "not taken: PHB",
		"net0  fabric  net1", "side by side: 418.8 GB/s\n  1 x NVL 370.8 GB/s\n  1 x PHB 48 GB/s"} {
		if !strings.Contains(out, says) {
			t.Errorf("no %q in %s", says, out)
		}
	}
	mesh, _, _ := hccl(t, "topo", "explain", machines+"full-mesh-8gpu.xml", "0", "1")
	for _, says := range []string{"gpu0 to gpu1: NET (over the network), 48 GB/s", "net0  fabric  net1", "left to the network",
		"not taken: NVL (NVLink), 40.1 GB/s", "before the bandwidth\n  5 more like it", "  6 x NVB 40.1 GB/s"} {
		if !strings.Contains(mesh, says) {
			t.Errorf("no %q in %s", says, mesh)
		}
	}
	if again, _, _ := hccl(t, "topo", "explain", "--file", file, "gpu0", "gpu1"); status != 0 || again != out {
		t.Errorf("status %d, %s", status, again)
	}
	if _, text, status := hccl(t, "topo", "explain", file, "0", "8"); status != 1 || !strings.Contains(text, "no such rank or port") {
		t.Errorf("status %d, %s", status, text)
	}
}

func TestTopoMatrix(t *testing.T) {
	out, _, status := hccl(t, "topo", "matrix", machines+"h100-nvswitch-8nic.xml", "--hosts", "2", "--json")
	var got costs
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || len(got.Cost) != 16 || len(got.Ranks) != 16 {
		t.Fatalf("status %d, %v, %.200s", status, err, out)
	}
	if got.Cost[3][3] != 0 || got.Bandwidth[0][1] != 370.8 || got.Cost[0][8] != 1 || got.Type[0][8] != "NET" || got.Ranks[8].Host != 1 {
		t.Errorf("%.300s", out)
	}
	empty := filepath.Join(t.TempDir(), "empty.xml")
	if err := os.WriteFile(empty, []byte(`<system version="1"><cpu numaid="0" arch="arm64"/></system>`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, text, status := hccl(t, "topo", "matrix", empty); status != 1 || !strings.Contains(text, "no GPU with a rank") {
		t.Errorf("status %d, %s", status, text)
	}
	_, text, status := hccl(t, "topo", "matrix", machines+"gb10.xml", "--scope", "some")
	if status != 1 || !strings.Contains(text, "all, local or none") {
		t.Errorf("status %d, %s", status, text)
	}
}

// A fault that only a person can mend is told to be left.
func TestTopoXMLTellsWhatIsLeft(t *testing.T) {
	file := filepath.Join(t.TempDir(), "vax.xml")
	if err := os.WriteFile(file, []byte(`<system version="1"><cpu numaid="0" arch="vax"/></system>`), 0o666); err != nil {
		t.Fatal(err)
	}
	_, text, status := hccl(t, "topo", "xml", file)
	if status != 0 || !strings.Contains(text, `1 fault left in what is written, the first: line 2: NUMA node 0 has arch "vax"`) {
		t.Errorf("status %d, %s", status, text)
	}
}

// What is written has no faults left, and shows the same machine.
func TestTopoXML(t *testing.T) {
	out, text, status := hccl(t, "topo", "xml", machines+"a100-uneven-bridge.xml")
	file := filepath.Join(t.TempDir(), "again.xml")
	if err := os.WriteFile(file, []byte(out), 0o666); err != nil || status != 0 || !strings.Contains(text, "1 fault") {
		t.Fatalf("%v, status %d, %s", err, status, text)
	}
	before, _, _ := hccl(t, "topo", machines+"a100-uneven-bridge.xml")
	if after, text, status := hccl(t, "topo", file); status != 0 || text != "" || after != before {
		t.Errorf("status %d, %s, %s", status, text, after)
	}
}

func TestTopoDraws(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.svg")
	if out, text, status := hccl(t, "topo", machines+"amd-nvlink-pairs.xml", "--svg", file); status != 0 || out != "" {
		t.Fatalf("status %d, %s %s", status, out, text)
	}
	b, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(b), "<svg ") || strings.Count(string(b), "<title>channel ") < 8 {
		t.Errorf("%v: not two rings over four GPUs: %.300s", err, b)
	}
	_, text, status := hccl(t, "topo", machines+"gb10.xml", "--svg", filepath.Join(file, "b.svg"))
	if status != 1 || !strings.Contains(text, "--svg: ") {
		t.Errorf("status %d, %s", status, text)
	}
}

// The rings found make a graph file that fits the machine, with all of their bandwidth.
func TestTopoGraph(t *testing.T) {
	out, text, status := hccl(t, "topo", "graph", machines+"amd-nvlink-pairs.xml")
	if status != 0 || !strings.Contains(text, "24 of the 24 GB/s") {
		t.Fatalf("status %d, %s", status, text)
	}
	file := filepath.Join(t.TempDir(), "graph.xml")
	if err := os.WriteFile(file, []byte(out), 0o666); err != nil {
		t.Fatal(err)
	}
	if said, _, status := hccl(t, "topo", "check", machines+"amd-nvlink-pairs.xml", "--graph", file); status != 0 {
		t.Errorf("status %d, %s, %s", status, said, out)
	}
}
