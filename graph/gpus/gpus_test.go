package gpus_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/go-cmp/cmp"

	"hccl.dev/hccl/graph/gpus"
	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/sysfs"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/testkit/recorded"
)

var update = flag.Bool("update", false, "write the golden files anew")

// places of the GPUs and NVSwitches of the recorded machine.
var (
	buses    = []uint32{0x18, 0x29, 0x40, 0x57, 0x9a, 0xaa, 0xc0, 0xd6}
	switches = []uint32{0x06, 0x07, 0x08, 0x09}
)

// wire gives a machine of mocks places on the bus and links, of which the mocks know nothing. far says where link n of GPU k leads;
// false: the link does not work.
func wire(t *testing.T, lib nvml.Interface, links int, far func(k, n int) (nvml.PciInfo, nvml.IntNvLinkDeviceType, bool)) []*server.Device {
	t.Helper()
	count, _ := lib.DeviceGetCount()
	var all []*server.Device
	for k := range count {
		dev, _ := lib.DeviceGetHandleByIndex(k)
		d := dev.(*server.Device)
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{Bus: buses[k]}, nvml.SUCCESS }
		d.GetNvLinkStateFunc = func(n int) (nvml.EnableState, nvml.Return) {
			if n >= links {
				return 0, nvml.ERROR_INVALID_ARGUMENT
			}
			if _, _, up := far(k, n); !up {
				return nvml.FEATURE_DISABLED, nvml.SUCCESS
			}
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		}
		d.GetNvLinkCapabilityFunc = func(int, nvml.NvLinkCapability) (uint32, nvml.Return) { return 1, nvml.SUCCESS }
		d.GetNvLinkRemotePciInfoFunc = func(n int) (nvml.PciInfo, nvml.Return) {
			pci, _, _ := far(k, n)
			return pci, nvml.SUCCESS
		}
		d.GetNvLinkRemoteDeviceTypeFunc = func(n int) (nvml.IntNvLinkDeviceType, nvml.Return) {
			_, kind, _ := far(k, n)
			return kind, nvml.SUCCESS
		}
		d.GetFieldValuesFunc = func([]nvml.FieldValue) nvml.Return { return nvml.ERROR_NOT_SUPPORTED }
		d.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) { return nvml.GpuFabricInfo{}, nvml.ERROR_NOT_SUPPORTED }
		d.GetNumaNodeIdFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
		d.GetCpuAffinityFunc = func(int) ([]uint, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
		all = append(all, d)
	}
	return all
}

// toSwitches leads the links to the NVSwitches in turns.
func toSwitches(_, n int) (nvml.PciInfo, nvml.IntNvLinkDeviceType, bool) {
	return nvml.PciInfo{Bus: switches[n%len(switches)]}, nvml.NVLINK_DEVICE_TYPE_SWITCH, true
}

func host(t *testing.T) (*topo.Machine, *topo.Report) {
	t.Helper()
	return sysfs.Read(recorded.Load(t, "../sysfs/testdata/h100-8gpu.txt"), "amd64")
}

// The machines that come with go-nvml stand in the recorded host. Golden is what the first of them is in NCCL's form.
func TestMockMachines(t *testing.T) {
	for _, c := range []struct {
		name      string
		lib       nvml.Interface
		sm, links int
		bw        float64 // between two GPUs
	}{
		{"dgxa100", dgxa100.New(), 80, 12, 240}, {"dgxh100", dgxh100.New(), 90, 18, 370.8},
		{"dgxh200", dgxh200.New(), 90, 18, 370.8}, {"dgxb200", dgxb200.New(), 100, 18, 721.8},
	} {
		m, report := host(t)
		wire(t, c.lib, c.links, toSwitches)
		gpus.Add(m, c.lib, true, report)
		topo.Clean(m, report)
		if len(report.Faults) > 0 || strings.Contains(fmt.Sprint(report.Notes), "GPU") {
			t.Errorf("%s: %v %v", c.name, report.Faults, report.Notes)
		}
		g := topo.Build(m)
		if len(g.GPUs) != 8 || g.SM(g.GPUs[7]) != c.sm {
			t.Fatalf("%s: %d GPUs, the last of sm %d", c.name, len(g.GPUs), g.SM(g.GPUs[7]))
		}
		if p := path.New(g).Between(g.GPUs[0], g.GPUs[7]); p.Type != path.NVL || p.Bandwidth < c.bw-0.1 || p.Bandwidth > c.bw+0.1 {
			t.Errorf("%s: from GPU 0 to 7 by %v at %v GB/s, want %v", c.name, p.Type, p.Bandwidth, c.bw)
		}
		golden(t, "testdata/"+c.name+".golden", m, report)
	}
}

func golden(t *testing.T, file string, m *topo.Machine, report *topo.Report) {
	t.Helper()
	var got bytes.Buffer
	for _, n := range report.Notes {
		fmt.Fprintf(&got, "note: %s\n", n)
	}
	if err := ncclxml.Write(&got, m); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", file, d)
	}
}

// Cards in pairs by bridges, a link that does not work, and one that only carries something else.
func TestBridges(t *testing.T) {
	lib := dgxa100.New()
	m, report := host(t)
	all := wire(t, lib, 4, func(k, n int) (nvml.PciInfo, nvml.IntNvLinkDeviceType, bool) {
		return nvml.PciInfo{Bus: buses[k^1]}, nvml.NVLINK_DEVICE_TYPE_UNKNOWN, k >= 2 || n != 3
	})
	for _, d := range all[6:] {
		d.GetNvLinkCapabilityFunc = func(n int, _ nvml.NvLinkCapability) (uint32, nvml.Return) { return uint32(min(n, 1)), nvml.SUCCESS }
	}
	gpus.Add(m, lib, false, report)
	topo.Clean(m, report)
	var got []string
	m.GPUs(func(d *topo.Device, g *topo.GPU) {
		for _, l := range g.NVLinks {
			got = append(got, fmt.Sprintf("%s: %d to %s %s", d.BusID, l.Count, l.Target, l.Class))
		}
	})
	want := "0000:18:00.0: 3 to 0000:29:00.0 0x030200 0000:29:00.0: 3 to 0000:18:00.0 0x030200 " +
		"0000:40:00.0: 4 to 0000:57:00.0 0x030200 0000:57:00.0: 4 to 0000:40:00.0 0x030200 " +
		"0000:9a:00.0: 4 to 0000:aa:00.0 0x030200 0000:aa:00.0: 4 to 0000:9a:00.0 0x030200 " +
		"0000:c0:00.0: 3 to 0000:d6:00.0 0x030200 0000:d6:00.0: 3 to 0000:c0:00.0 0x030200"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("%s", cmp.Diff(strings.Split(want, " 0000"), strings.Split(text, " 0000")))
	}
	if text := fmt.Sprint(report.Notes); !strings.Contains(text, "NVLinks do not work: GPU 0000:18:00.0 1 of 4, GPU 0000:29:00.0 1 of 4;") {
		t.Errorf("notes: %s", text)
	}
}

// A virtual machine does not show the NVSwitches: what cannot be seen is one.
func TestHiddenSwitches(t *testing.T) {
	for name, pci := range map[string]nvml.PciInfo{"far away": {Domain: 0xffffffff, Bus: 0xff, Device: 0xff}, "not on the bus": {Bus: 0xe1}} {
		lib := dgxh100.New()
		m, report := host(t)
		wire(t, lib, 18, func(int, int) (nvml.PciInfo, nvml.IntNvLinkDeviceType, bool) {
			return pci, nvml.NVLINK_DEVICE_TYPE_UNKNOWN, true
		})
		gpus.Add(m, lib, true, report)
		topo.Clean(m, report)
		m.GPUs(func(d *topo.Device, g *topo.GPU) {
			if len(g.NVLinks) != 1 || g.NVLinks[0].Count != 18 || g.NVLinks[0].Class != topo.ClassNVSwitch {
				t.Errorf("%s: GPU %s has %d ends, the first %+v", name, d.BusID, len(g.NVLinks), g.NVLinks[0])
			}
		})
		if len(report.Faults) > 0 {
			t.Errorf("%s: %v", name, report.Faults)
		}
	}
}

// Grace tells its C2C links by numbered values, and its place in a fabric of several hosts.
func TestChipLinksAndFabric(t *testing.T) {
	lib := dgxh200.New()
	m, report := host(t)
	values := map[[2]uint32]uint64{{nvml.FI_DEV_C2C_LINK_COUNT, 0}: 10}
	for link := range uint32(10) {
		values[[2]uint32{nvml.FI_DEV_C2C_LINK_GET_STATUS, link}] = uint64(min(link, 1)) // the first one is down
		values[[2]uint32{nvml.FI_DEV_C2C_LINK_GET_MAX_BW, link}] = 44712
	}
	for _, d := range wire(t, lib, 18, toSwitches) {
		d.GetFieldValuesFunc = func(v []nvml.FieldValue) nvml.Return {
			v[0].ValueType = uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG)
			binary.NativeEndian.PutUint64(v[0].Value[:], values[[2]uint32{v[0].FieldId, v[0].ScopeId}])
			return nvml.SUCCESS
		}
		d.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) {
			return nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_COMPLETED, ClusterUuid: [16]uint8{1, 2, 3, 15: 255}, CliqueId: 7}, nvml.SUCCESS
		}
	}
	gpus.Add(m, lib, true, report)
	m.GPUs(func(d *topo.Device, g *topo.GPU) {
		if len(g.C2C) != 1 || g.C2C[0].Count != 9 || g.C2C[0].MBps != 44712 {
			t.Errorf("GPU %s: %d kinds of C2C", d.BusID, len(g.C2C))
		}
		want := []topo.Attr{{Name: gpus.FabricCluster, Value: "01020300-0000-0000-0000-0000000000ff"}, {Name: gpus.FabricClique, Value: "7"}}
		if !cmp.Equal(g.Extra, want) {
			t.Errorf("GPU %s: %v", d.BusID, g.Extra)
		}
	})
}

// A container may have the GPUs without the PCI tree: they are put at their NUMA node, and that is said.
func TestPlacesThatAreNotThere(t *testing.T) {
	lib := dgxh100.New()
	m, report := host(t)
	for _, c := range m.CPUs {
		c.Devices = nil
	}
	all := wire(t, lib, 18, toSwitches)
	for k, d := range all {
		d.GetNumaNodeIdFunc = func() (int, nvml.Return) { return k / 4, nvml.SUCCESS }
	}
	all[7].GetNumaNodeIdFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	all[7].GetCpuAffinityFunc = func(int) ([]uint, nvml.Return) { return []uint{0, 1 << 16}, nvml.SUCCESS } // processor 80, of node 1
	gpus.Add(m, lib, true, report)
	if len(m.CPUs[0].Devices) != 4 || len(m.CPUs[1].Devices) != 4 {
		t.Errorf("%d and %d GPUs", len(m.CPUs[0].Devices), len(m.CPUs[1].Devices))
	}
	topo.Clean(m, report)
	if text := fmt.Sprint(report.Notes); !strings.Contains(text, "not in the PCI tree: 0000:18:00.0,") || len(report.Faults) > 0 {
		t.Errorf("%s, faults %v", text, report.Faults)
	}
}

// Errors of the driver concern the GPU that has them.
func TestErrors(t *testing.T) {
	lib := dgxa100.New()
	m, report := host(t)
	all := wire(t, lib, 12, toSwitches)
	all[1].GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.ERROR_GPU_IS_LOST }
	all[2].SetMigMode(nvml.DEVICE_MIG_ENABLE)
	lib.DeviceGetHandleByIndexFunc = func(k int) (nvml.Device, nvml.Return) {
		if k == 3 {
			return nil, nvml.ERROR_NO_PERMISSION
		}
		return all[k], nvml.SUCCESS
	}
	gpus.Add(m, lib, true, report)
	n := 0
	m.GPUs(func(*topo.Device, *topo.GPU) { n++ })
	text := fmt.Sprint(report.Notes)
	for _, says := range []string{"GPU 1 has no place", "GPU 3 cannot be asked", "into parts (MIG): 0000:40:00.0;"} {
		if !strings.Contains(text, says) || n != 6 {
			t.Errorf("%d GPUs, %s, want %q", n, text, says)
		}
	}
}
