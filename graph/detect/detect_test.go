package detect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"hccl.dev/hccl/graph/detect"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/testkit/recorded"
)

func on(t *testing.T, machine string) detect.Settings {
	return detect.Settings{Root: recorded.Load(t, "../sysfs/testdata/"+machine+".txt")}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "topo.xml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// has says where each port is: "name dev@place".
func has(m *topo.Machine) (all []string) {
	m.Walk(func(c *topo.CPU, d *topo.Device) {
		if d.NIC != nil {
			for _, p := range d.NIC.Ports {
				all = append(all, fmt.Sprintf("%s %d@%d/%s", p.Name, p.Number, c.NUMA, d.BusID))
			}
		}
	})
	return all
}

func gpus(m *topo.Machine) (n int) {
	m.GPUs(func(*topo.Device, *topo.GPU) { n++ })
	return n
}

const head = `<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="207">`

// A file that lists places only is what NCCL's users have for virtual machines: what is there comes from the machine.
func TestFileOfPlaces(t *testing.T) {
	s := on(t, "vm-one-card")
	s.File = write(t, head+`
<pci busid="ffff:ff:01.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
<pci busid="0000:00:03.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"/>
</pci></cpu></system>`)
	f := detect.Load(s)
	if len(f.Report.Faults) > 0 || !cmp.Equal(has(f.Machine), []string{"eth0 0@0/0000:00:03.0"}) {
		t.Errorf("%v, faults %v", has(f.Machine), f.Report.Faults)
	}
	if d := f.Machine.CPUs[0].Devices[0].Below[0]; d.Width != 16 || f.Machine.CPUs[0].Affinity != "3" {
		t.Errorf("width %d, affinity %q: want the file's, and the machine's", d.Width, f.Machine.CPUs[0].Affinity)
	}
	if text := fmt.Sprint(f.Report.Notes); strings.Contains(text, "places on the bus only") || !strings.Contains(f.From, s.File) {
		t.Errorf("from %s, notes %s", f.From, text)
	}
}

const another = head + `
<pci busid="0000:17:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" rank="0" gdr="1"/></pci>
<pci busid="0000:17:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="80" rank="1" gdr="1"/></pci>
<pci busid="0000:18:00.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="16"><nic>
<net name="rail1" dev="0" speed="100000" port="1"/>
<net name="rail9" dev="1" speed="100000" port="1"/></nic></pci></cpu></system>`

// C98: a file of another machine: what is here is used. On a machine without GPUs rings are laid for the one in the file, so that what is
// not here is no fault; and what is one is told once, as it was read.
func TestFileOfAnotherMachine(t *testing.T) {
	s := on(t, "vm-one-card")
	s.File = write(t, another)
	s.Dump = filepath.Join(t.TempDir(), "dump.xml")
	f := detect.Load(s)
	if !cmp.Equal(has(f.Machine), []string{"eth0 0@0/0000:00:03.0"}) {
		t.Errorf("%v", has(f.Machine))
	}
	text := fmt.Sprint(f.Report.Faults)
	if len(f.Report.Faults) != 1 || !strings.Contains(text, "line 3: bus id 0000:17:00.0 is there again") {
		t.Errorf("faults %v", f.Report.Faults)
	}
	for _, says := range []string{"2 GPUs (0000:17:00.0, 0000:17:00.0) and 2 ports (rail1, rail9) of the topology file; rings are laid as",
		"have no place in the topology file: NIC eth0"} {
		if strings.Count(fmt.Sprint(f.Report.Notes), says) != 1 {
			t.Errorf("notes %v, want %q", f.Report.Notes, says)
		}
	}
	if text := fmt.Sprint(f.Report.Notes); strings.Contains(text, "places on the bus only") {
		t.Errorf("what is not here is to be completed: %s", text)
	}
	if got := has(f.Plan); len(got) != 2 || gpus(f.Plan) != 2 || gpus(f.Machine) != 0 {
		t.Errorf("a machine without GPUs: rings are laid for one with ports %v and %d GPUs, want those of the file", got, gpus(f.Plan))
	}
	s.File, s.Dump = s.Dump, ""
	if again := detect.Load(s); !cmp.Equal(has(again.Machine), has(f.Machine)) || len(again.Report.Faults) > 0 {
		t.Errorf("what was written reads as %v, faults %v", has(again.Machine), again.Report.Faults)
	}
}

// On a machine with GPUs the ports that are not here are missed, all in one warning with the line of the first.
func TestPortsThatAreMissed(t *testing.T) {
	s := on(t, "h100-8gpu")
	s.File = write(t, another)
	f := detect.Load(s)
	var missed []topo.Fault
	for _, fault := range f.Report.Faults {
		if strings.Contains(fault.What, "2 ports (rail1, rail9) of the topology file; not counted") {
			missed = append(missed, fault)
		}
	}
	if len(missed) != 1 || missed[0].Line != 5 {
		t.Errorf("%v", f.Report.Faults)
	}
}

// What is written and read again is the same machine, without a fault.
func TestDumpIsTheMachine(t *testing.T) {
	for _, machine := range []string{"h100-8gpu", "vm-flat", "vm-one-card", "odd"} {
		s := on(t, machine)
		s.Dump = filepath.Join(t.TempDir(), "dump.xml")
		f := detect.Load(s)
		s.File, s.Dump = s.Dump, filepath.Join(t.TempDir(), "again.xml")
		again := detect.Load(s)
		first, err1 := os.ReadFile(s.File)
		second, err2 := os.ReadFile(s.Dump)
		if d := cmp.Diff(string(first), string(second)); d != "" || err1 != nil || err2 != nil {
			t.Errorf("%s: %v %v %s", machine, err1, err2, d)
		}
		if len(f.Report.Faults)+len(again.Report.Faults) > 0 {
			t.Errorf("%s: %v, then %v", machine, f.Report.Faults, again.Report.Faults)
		}
	}
}

// Where there are GPUs, rings are laid for what is there.
func TestPlanOfMachineWithGPUs(t *testing.T) {
	s := on(t, "h100-8gpu")
	s.File = "../testdata/machines/v100-cube-mesh.xml"
	if f := detect.Load(s); f.Plan != f.Machine {
		t.Errorf("rings are laid for a machine with %d GPUs, and there is one with %d", gpus(f.Plan), gpus(f.Machine))
	}
}

// A file that cannot be used is a fault, and so is one that cannot be written; the machine is the running one.
func TestFilesThatCannotBeUsed(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{
		filepath.Join(t.TempDir(), "none.xml"): "no such file",
		write(t, "<graphs version=\"1\"/>"):    "the root is <graphs>",
		write(t, "<system version=\"1\"><cpu"): "ends inside an element",
		t.TempDir():                            "no regular file",
		pipe:                                   "no regular file", // nobody writes to it: who opened it would wait
	} {
		s := on(t, "vm-one-card")
		s.File, s.Dump = file, filepath.Join(file, "no", "folder.xml")
		f := detect.Load(s)
		text := fmt.Sprint(f.Report.Faults)
		if !strings.Contains(text, says) || !strings.Contains(text, "NCCL_TOPO_DUMP_FILE cannot be written") {
			t.Errorf("%s, want %q", text, says)
		}
		if !cmp.Equal(has(f.Machine), []string{"eth0 0@0/0000:00:03.0"}) || strings.Contains(f.From, file) {
			t.Errorf("%v from %s", has(f.Machine), f.From)
		}
	}
}

// Some clouds leave the topology of a virtual machine's host at a place that NCCL knows.
func TestVirtualTopology(t *testing.T) {
	s := detect.Settings{Root: fstest.MapFS{
		"var/run/nvidia-topologyd/virtualTopology.xml": {Data: []byte(head + `</cpu><cpu numaid="1" arch="x86_64" vendor="GenuineIntel"
 familyid="6" modelid="207" affinity="c"/></system>`)},
		"proc/cpuinfo": {Data: []byte("vendor_id\t: GenuineIntel\n")},
	}}
	if f := detect.Load(s); len(f.Machine.CPUs) != 2 || !strings.Contains(f.From, "/var/run/nvidia-topologyd/virtualTopology.xml") {
		t.Errorf("%d NUMA nodes from %s", len(f.Machine.CPUs), f.From)
	}
}

// A driver is asked where one is handed in. What it finds is in the machine, and why it finds nothing stands at the source.
func TestDriver(t *testing.T) {
	s := on(t, "h100-8gpu")
	if f := detect.Load(s); f.From != "/sys and /proc" {
		t.Errorf("from %s", f.From)
	}
	s.GPUs = func(*topo.Machine, bool, *topo.Report) (asked, why string) { return "", "no driver" }
	if f := detect.Load(s); f.From != "/sys and /proc (no driver)" {
		t.Errorf("from %s", f.From)
	}
	s.GPUs = func(m *topo.Machine, direct bool, r *topo.Report) (asked, why string) {
		m.Walk(func(_ *topo.CPU, d *topo.Device) {
			if d.Class == topo.ClassGPU {
				d.GPUs = []*topo.GPU{{Rank: len(d.GPUs), SM: 90, GDR: direct}}
			}
		})
		return "DRV", ""
	}
	f := detect.Load(s)
	found, direct := 0, true
	f.Machine.GPUs(func(_ *topo.Device, g *topo.GPU) { found, direct = found+1, direct && g.GDR })
	if f.From != "/sys, /proc and DRV" || found != 8 || !direct {
		t.Errorf("from %s: %d GPUs, direct %v", f.From, found, direct)
	}
}
