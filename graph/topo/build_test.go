package topo_test

import (
	"fmt"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/topo"
)

func gpu(bus string, rank, sm int, links ...*topo.NVLink) *topo.Device {
	return &topo.Device{BusID: bus, Class: topo.ClassGPU, Speed: "16.0 GT/s PCIe", Width: 16,
		GPUs: []*topo.GPU{{Number: rank, Rank: rank, SM: sm, NVLinks: links}}}
}

func bridge(bus string, below ...*topo.Device) *topo.Device {
	return &topo.Device{BusID: bus, Class: topo.ClassBridge, Speed: "16.0 GT/s PCIe", Width: 16, Below: below}
}

func broadcom(d *topo.Device, vendor, device, subVendor, subProduct int) *topo.Device {
	d.IDs = topo.IDs{Given: true, Vendor: vendor, Device: device, SubVendor: subVendor, SubProduct: subProduct}
	return d
}

func host(devices ...*topo.Device) *topo.Machine {
	return &topo.Machine{CPUs: []*topo.CPU{{Arch: "x86_64", Vendor: "AuthenticAMD", Family: 25, Devices: devices}}}
}

// text has all links, as "from type bandwidth to".
func text(g *topo.Graph) string {
	var words []string
	for _, l := range g.Links {
		if l.Type != topo.LOC {
			words = append(words, fmt.Sprintf("%s %s %.4g %s", g.Nodes[l.From].Name, l.Type, l.Bandwidth, g.Nodes[l.To].Name))
		}
	}
	return strings.Join(words, "\n")
}

func TestLinksOfMachines(t *testing.T) {
	to := func(target string, class topo.Class, count int) *topo.NVLink {
		return &topo.NVLink{Target: target, Class: class, Count: count}
	}
	power := host(gpu("4:0:0.0", 0, 70, to("fff", topo.ClassNVLCPU, 3)))
	power.CPUs[0].Arch = "ppc64"
	parts := gpu("1:0:0.0", 0, 80)
	parts.GPUs = append(parts.GPUs, &topo.GPU{Rank: 1, Number: 0, SM: 80})
	for name, c := range map[string]struct {
		m    *topo.Machine
		want string
	}{
		"parallel NVLinks add up": {host(gpu("1:0:0.0", 0, 80, to("2:0:0.0", topo.ClassGPU, 2), to("2:0:0.0", topo.ClassGPU, 2)),
			gpu("2:0:0.0", 1, 80, to("0001:0:0.0", topo.ClassGPU, 4))),
			"cpu0 PCI 24 gpu0\ncpu0 PCI 24 gpu1\ngpu0 NVL 80 gpu1\ngpu0 PCI 24 cpu0\ngpu1 NVL 80 gpu0\ngpu1 PCI 24 cpu0"},
		"NVSwitches are one": {host(gpu("1:0:0.0", 0, 90, to("a", topo.ClassNVSwitch, 9), to("b", topo.ClassNVSwitch, 9))),
			"cpu0 PCI 24 gpu0\ngpu0 NVL 370.8 nvs\ngpu0 PCI 24 cpu0\nnvs NVL 370.8 gpu0"},
		"NVLink to the CPU":  {power, "cpu0 NVL 60 gpu0\ncpu0 PCI 24 gpu0\ngpu0 PCI 24 cpu0\ngpu0 NVL 60 cpu0"},
		"parts of one GPU":   {host(parts), "cpu0 PCI 24 gpu0\ngpu0 PCI 24 cpu0"},
		"nobody uses a GPU":  {host(gpu("1:0:0.0", -1, 80)), ""},
		"an NVSwitch device": {host(&topo.Device{BusID: "1:0:0.0", Class: topo.ClassNVSwitch}), ""},
		"two levels of Broadcom switches, generation 5": {host(broadcom(bridge("1:0:0.0", broadcom(bridge("2:0:0.0", gpu("3:0:0.0", 0, 90)),
			0x1000, 0xc030, 0x1000, 0x1abc)), 0x1000, 0xc030, 0x1000, 0x0abc)),
			"cpu0 PCI 24 pci1:0:0.0\npci1:0:0.0 PCI 24 gpu0\npci1:0:0.0 PCI 24 cpu0\ngpu0 PCI 24 pci1:0:0.0"},
		"generations 4 and 5 stay apart": {host(broadcom(bridge("1:0:0.0", broadcom(bridge("2:0:0.0", gpu("3:0:0.0", 0, 90)),
			0x1000, 0xc030, 0x1000, 0x1abc)), 0x1000, 0xc010, 0x1000, 0xa096)),
			"cpu0 PCI 24 pci1:0:0.0\npci1:0:0.0 PCI 24 pci2:0:0.0\npci1:0:0.0 PCI 24 cpu0\npci2:0:0.0 PCI 24 gpu0\n" +
				"pci2:0:0.0 PCI 24 pci1:0:0.0\ngpu0 PCI 24 pci2:0:0.0"},
	} {
		g := topo.Build(c.m)
		if got := text(g); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
		for k, l := range g.Links {
			if l.Reverse >= 0 && (g.Links[l.Reverse].Reverse != k || g.Links[l.Reverse].From != l.To) {
				t.Errorf("%s: link %d and its reverse %d do not agree", name, k, l.Reverse)
			}
		}
	}
}

// A card with two functions' worth of ports in two places is one; a port that is off is none; without a speed it has 10 Gb/s.
func TestPorts(t *testing.T) {
	card := func(ports ...*topo.Port) *topo.Device {
		return &topo.Device{BusID: "5:0:0.0", Class: topo.ClassNIC, Speed: "8 GT/s", Width: 8, NIC: &topo.NIC{Ports: ports}}
	}
	g := topo.Build(host(card(&topo.Port{Number: 0, Mbps: 100_000}), card(&topo.Port{Number: 1}, &topo.Port{Number: 2, Off: true}),
		&topo.Device{NIC: &topo.NIC{Ports: []*topo.Port{{Number: 3, Mbps: 25_000}}}}))
	want := "cpu0 PCI 5000 nic@\ncpu0 PCI 6 nic5:0:0.0\nnic5:0:0.0 NET 12.5 net0\nnic5:0:0.0 NET 1.25 net1\nnic5:0:0.0 PCI 6 cpu0\n" +
		"net0 NET 12.5 nic5:0:0.0\nnet1 NET 1.25 nic5:0:0.0\nnic@ NET 3.125 net3\nnic@ PCI 5000 cpu0\nnet3 NET 3.125 nic@"
	if got := text(g); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// What NCCL assumes between NUMA nodes.
func TestBusBetweenNUMANodes(t *testing.T) {
	for _, c := range []struct {
		arch, vendor  string
		family, model int
		want          float64
	}{
		{"x86_64", "GenuineIntel", 6, 0x4f, 6}, {"x86_64", "GenuineIntel", 6, 0x55, 10}, {"x86_64", "GenuineIntel", 6, 0x8f, 22},
		{"x86_64", "GenuineIntel", 6, 0xcf, 40}, {"x86_64", "GenuineIntel", 0, 0, 6}, {"x86_64", "AuthenticAMD", 25, 1, 16},
		{"x86_64", "CentaurHauls", 7, 0x5b, 9}, {"x86_64", "  Shanghai  ", 7, 0x3b, 6}, {"x86_64", "AMD", 0, 0, 5000},
		{"ppc64", "", 0, 0, 32}, {"arm64", "", 0, 0, 6}, {"", "", 0, 0, 5000},
	} {
		cpu := func(n int) *topo.CPU {
			return &topo.CPU{NUMA: n, Arch: c.arch, Vendor: c.vendor, Family: c.family, Model: c.model}
		}
		g := topo.Build(&topo.Machine{CPUs: []*topo.CPU{cpu(0), cpu(1)}})
		if len(g.Links) != 2 || g.Links[0].Bandwidth != c.want {
			t.Errorf("%s %s %d %#x: %v, want %g", c.arch, c.vendor, c.family, c.model, g.Links, c.want)
		}
	}
}

func TestNVLinkSpeeds(t *testing.T) {
	for sm, want := range map[int]float64{35: 20, 60: 18, 70: 20, 80: 20, 86: 12, 87: 20, 89: 20, 90: 20.6, 100: 40.1, 120: 40.1} {
		if got := topo.NVLinkBandwidth(sm); got != want {
			t.Errorf("sm %d: %g, want %g", sm, got, want)
		}
	}
}

// The text's beginning decides; what NCCL does not know counts as 8 GT/s, and an absent width as 16 lanes.
func TestPCISpeeds(t *testing.T) {
	for text, want := range map[string]float64{"2.5 GT/s": 3, "5 GT/s": 6, "8.0 GT/s PCIe": 12, "16 GT/s": 24, "32 GT/s PCIe/s": 48,
		"64.0 GT/s PCIe": 96, "": 12, "Unknown": 12, "32.0 GT/s": 12} {
		if got := (&topo.Device{Speed: text}).Bandwidth(); got != want {
			t.Errorf("%q: %g, want %g", text, got, want)
		}
	}
	if got := (&topo.Device{Speed: "16 GT/s", Width: 4}).Bandwidth(); got != 6 {
		t.Errorf("4 lanes: %g, want 6", got)
	}
}

// A card whose link cannot carry half of its ports' traffic is noticed, unless the link is not known anyway.
func TestNarrowLinkIsNoticed(t *testing.T) {
	for _, c := range []struct {
		speed       string
		mbps, notes int
	}{{"8 GT/s", 200_000, 1}, {"16 GT/s", 200_000, 0}, {"", 200_000, 1}} { // 12 GB/s of 25; 24 of 25; not known, which is a note itself
		m := host(&topo.Device{Line: 3, BusID: "5:0:0.0", Class: topo.ClassNIC, Speed: c.speed, Width: 16,
			NIC: &topo.NIC{Ports: []*topo.Port{{Mbps: c.mbps}}}})
		var r topo.Report
		topo.Clean(m, &r)
		narrow := len(r.Notes) > 0 && strings.Contains(r.Notes[0].What, "limits them")
		if len(r.Notes) != c.notes || narrow != (c.speed == "8 GT/s") {
			t.Errorf("%q: %v", c.speed, r.Notes)
		}
	}
}
