package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/ncclxml"
)

// Without a file it is this machine, whatever that has; and it can be written, read and written down.
func TestTopoOfThisMachine(t *testing.T) {
	folder := t.TempDir()
	dump := filepath.Join(folder, "dump.xml")
	t.Setenv("NCCL_TOPO_DUMP_FILE", dump)
	out, text, status := hccl(t, "topo")
	if status != 0 || !strings.Contains(out, "this machine, by /sys") || !strings.Contains(out, "NUMA node 0") || text != "" {
		t.Errorf("status %d, %s %s", status, out, text)
	}
	t.Setenv("NCCL_TOPO_DUMP_FILE", "")
	xml, _, status := hccl(t, "topo", "xml")
	written, err := os.ReadFile(dump)
	if err != nil || status != 0 || string(written) != xml {
		t.Errorf("status %d, %v: %s and %s", status, err, written, xml)
	}
	if _, report, err := ncclxml.Read(strings.NewReader(xml)); err != nil || len(report.Faults) > 0 {
		t.Errorf("%v, %v", err, report)
	}
	t.Setenv("NCCL_TOPO_FILE", dump)
	if out, text, _ = hccl(t, "topo"); !strings.Contains(out, "this machine, by "+dump+", completed by /sys") || text != "" {
		t.Errorf("%s %s", out, text)
	}
}

// A machine with RDMA devices lists other cards as well, and says that they are not counted.
func TestTopoShowsPortsThatAreNotUsed(t *testing.T) {
	golden, err := os.ReadFile("../../graph/sysfs/testdata/h100-8gpu.golden")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "host.xml")
	if err := os.WriteFile(file, golden[strings.Index(string(golden), "<system"):], 0o644); err != nil {
		t.Fatal(err)
	}
	out, _, _ := hccl(t, "topo", file)
	for _, says := range []string{"2 NUMA nodes, 0 GPUs, 8 network ports", "port 8 ens6f0np0  12.5 GB/s, not used for messages",
		"NVSwitch 0000:06:00.0"} {
		if !strings.Contains(out, says) {
			t.Errorf("no %q in %s", says, out)
		}
	}
}

func TestTopoRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine.txt")
	plain, _, _ := hccl(t, "topo", "record")
	if _, text, status := hccl(t, "topo", "record", file); status != 0 || text != "" {
		t.Errorf("status %d, %s", status, text)
	}
	written, err := os.ReadFile(file)
	if err != nil || string(written) != plain || !strings.Contains(plain, "sys/devices/system/") {
		t.Errorf("%v: %s and %s", err, written, plain)
	}
	nowhere := filepath.Join(file, "no", "folder")
	if _, text, status := hccl(t, "topo", "record", nowhere); status != 1 || !strings.Contains(text, "not a directory") {
		t.Errorf("status %d, %s", status, text)
	}
}
