package sysfs_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/sysfs"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/testkit/recorded"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Each recorded machine has a golden file: what is said of it, and what it is in NCCL's form.
func TestRecordedMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 4 {
		t.Fatalf("recorded machines: %v, %v", files, err)
	}
	for _, file := range files {
		m, report := sysfs.Read(recorded.Load(t, file), "amd64")
		topo.Clean(m, report)
		if len(report.Faults) > 0 {
			t.Errorf("%s: the running machine is no file that somebody wrote, and can have no fault: %v", file, report.Faults)
		}
		var got bytes.Buffer
		for _, n := range report.Notes {
			fmt.Fprintf(&got, "note: %s\n", n)
		}
		if err := ncclxml.Write(&got, m); err != nil {
			t.Fatal(err)
		}
		golden := strings.TrimSuffix(file, ".txt") + ".golden"
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got.String()); d != "" {
			t.Errorf("%s differs (go test -update writes it anew):\n%s", golden, d)
		}
	}
}

// A recording has all that is read, so that it is the same machine, and a recording of it is the same text.
func TestRecordingIsComplete(t *testing.T) {
	for _, file := range []string{"testdata/h100-8gpu.txt", "testdata/vm-flat.txt", "testdata/vm-one-card.txt", "testdata/odd.txt"} {
		original := recorded.Load(t, file)
		var first, second bytes.Buffer
		if err := sysfs.Record(&first, original, "amd64"); err != nil {
			t.Fatal(err)
		}
		copied, err := recorded.Parse(first.String())
		if err != nil {
			t.Fatal(err)
		}
		if err := sysfs.Record(&second, copied, "amd64"); err != nil || first.String() != second.String() {
			t.Errorf("%s: a recording of the recording differs (%v):\n%s", file, err, cmp.Diff(first.String(), second.String()))
		}
		want, said := sysfs.Read(original, "amd64")
		got, saidToo := sysfs.Read(copied, "amd64")
		if d := cmp.Diff(want, got) + cmp.Diff(said, saidToo); d != "" {
			t.Errorf("%s: the recording is another machine:\n%s", file, d)
		}
	}
}

// The machine that the test runs on, whatever it is, is read and has a processor.
func TestRunningMachine(t *testing.T) {
	m, report := sysfs.Read(os.DirFS("/"), "amd64")
	topo.Clean(m, report)
	if len(m.CPUs) == 0 || len(report.Faults) > 0 {
		t.Errorf("%d NUMA nodes, faults %v", len(m.CPUs), report.Faults)
	}
}

// What containers hide is said, and the rest is read.
func TestHiddenParts(t *testing.T) {
	whole := map[string]string{
		"proc/cpuinfo":                             "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n",
		"sys/devices/system/node/online":           "0\n",
		"sys/devices/system/node/node0/cpumap":     "f\n",
		"sys/devices/system/cpu/online":            "0-3\n",
		"sys/bus/pci/devices/0000:01:00.0/class":   "0x030200\n",
		"sys/class/net/eth0/operstate":             "up\n",
		"sys/class/net/eth0/type":                  "1\n",
		"sys/class/net/eth0/speed":                 "25000\n",
		"sys/bus/pci/devices/0000:01:00.0/vendor":  "0x10de\n",
		"sys/bus/pci/devices/0000:01:00.0/numa":    "\n",
		"sys/bus/pci/devices/0000:01:00.0/strange": "\n",
	}
	for _, c := range []struct{ hidden, says string }{
		{"sys/bus", "the PCI bus is not seen (sys/bus/pci/devices: file does not exist)"},
		{"sys/devices/system/node", "the kernel shows no NUMA nodes"},
		{"sys/class/net", "no network interface that is up"},
		{"proc", "what processor this is is not known: proc/cpuinfo cannot be read"},
		{"sys", "the PCI bus is not seen"},
	} {
		tree := fstest.MapFS{}
		for name, text := range whole {
			if !strings.HasPrefix(name, c.hidden+"/") {
				tree[name] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		m, report := sysfs.Read(tree, "arm64")
		if text := fmt.Sprint(report.Notes); !strings.Contains(text, c.says) {
			t.Errorf("without %s: %s, want %q", c.hidden, text, c.says)
		}
		if cpu := m.CPUs[0]; len(m.CPUs) != 1 || cpu.NUMA != 0 || c.hidden != "sys" && cpu.Affinity != "f" || cpu.Arch == "" {
			t.Errorf("without %s: %d NUMA nodes, the first %+v", c.hidden, len(m.CPUs), cpu)
		}
	}
}

func TestProcessors(t *testing.T) {
	for _, c := range []struct{ info, goarch, arch, vendor string }{
		{"vendor_id\t:   Shanghai  \ncpu family\t: 7\nmodel\t: 91\n", "amd64", "x86_64", "  Shanghai  "},
		{"processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\n", "arm64", "arm64", ""},
		{"processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", "ppc64le", "ppc64", ""},
		{"", "arm64", "arm64", ""},
	} {
		m, _ := sysfs.Read(fstest.MapFS{"proc/cpuinfo": {Data: []byte(c.info)}}, c.goarch)
		if got := m.CPUs[0]; got.Arch != c.arch || got.Vendor != c.vendor {
			t.Errorf("%q: arch %q, vendor %q", c.info, got.Arch, got.Vendor)
		}
	}
}
