package topo_test

import (
	"fmt"
	"strings"
	"testing"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

const pci = `<pci busid="0000:%s" class="%s" link_speed="16.0 GT/s PCIe" link_width="16">%s</pci>`

func aGPU(bus string, n int) string {
	return fmt.Sprintf(pci, bus, "0x030200", fmt.Sprintf(`<gpu dev="%d" sm="80" rank="%[1]d"/>`, n))
}

func aCard(bus string, n int) string {
	return fmt.Sprintf(pci, bus, "0x020000", fmt.Sprintf(`<nic><net dev="%d" speed="100000"/></nic>`, n))
}

func aSwitch(bus, below string) string { return fmt.Sprintf(pci, bus, "0x060400", below) }

func read(t *testing.T, vendor, devices string) (*topo.Machine, *topo.Report) {
	t.Helper()
	m, r, err := ncclxml.Read(strings.NewReader(fmt.Sprintf(`<system version="1"><cpu numaid="0" arch="x86_64" vendor="%s" familyid="6"
 modelid="207">%s</cpu></system>`, vendor, devices)))
	if err != nil {
		t.Fatal(err)
	}
	return m, r
}

// What is in the place of another is told once, as it counts; and what is written after Mend has no fault and the same paths.
func TestPlacesThatAreTaken(t *testing.T) {
	for name, c := range map[string]struct {
		devices string
		says    string
		faults  int
	}{
		"the same GPU":     {aGPU("11:00.0", 0) + aGPU("11:00.0", 0) + aGPU("12:00.0", 1), "its GPU is not used", 1},
		"part of a GPU":    {aGPU("11:00.0", 0) + aGPU("11:00.0", 2) + aGPU("12:00.0", 1), "its GPU counts as a part of the first", 1},
		"ports of a card":  {aGPU("11:00.0", 0) + aCard("12:00.0", 0) + aCard("12:00.0", 1), "its ports count to the first place", 1},
		"a card, a GPU":    {aGPU("11:00.0", 0) + aCard("11:00.0", 0), "both count, each as what it is", 1},
		"a card, a switch": {aSwitch("10:00.0", aGPU("11:00.0", 0)) + aCard("10:00.0", 0), "both count, each as what it is", 1},
		"two switches":     {aSwitch("10:00.0", aGPU("11:00.0", 0)) + aSwitch("10:00.0", aGPU("12:00.0", 1)), "a switch of its own", 1},
		"a place":          {aGPU("11:00.0", 0) + fmt.Sprintf(pci, "11:00.0", "0x030200", ""), "it does not count", 1},
		"values": {strings.NewReplacer(`speed="100000"`, `speed="900000000"`, "0x020000", "", "16.0 GT/s PCIe", "fast").Replace(
			aGPU("11:00.0", 0) + aCard("12:00.0", 0)), "has no class", 4},
	} {
		m, r := read(t, "GenuineIntel", c.devices)
		if len(r.Faults) != c.faults || !strings.Contains(fmt.Sprint(r.Faults), c.says) {
			t.Errorf("%s: want %d faults, with %q: %v", name, c.faults, c.says, r.Faults)
		}
		before := path.New(topo.Build(m))
		topo.Mend(m)
		var text strings.Builder
		if err := ncclxml.Write(&text, m); err != nil {
			t.Fatal(err)
		}
		again, left, err := ncclxml.Read(strings.NewReader(text.String()))
		if err != nil || len(left.Faults) > 0 {
			t.Fatalf("%s: %v, %v is left in\n%s", name, err, left, text.String())
		}
		if want, got := paths(before), paths(path.New(topo.Build(again))); got != want {
			t.Errorf("%s: paths were\n%s\nand are\n%s", name, want, got)
		}
	}
}

// paths are those between GPUs and from them to ports.
func paths(t *path.Table) string {
	var b strings.Builder
	for _, from := range t.Graph.GPUs {
		for _, to := range append(append([]int(nil), t.Graph.GPUs...), t.Graph.Ports...) {
			p := t.Between(from, to)
			fmt.Fprintln(&b, t.Graph.Nodes[from].Name, t.Graph.Nodes[to].Name, p.Type, p.Bandwidth)
		}
	}
	return b.String()
}

// A vendor that people write is spelled as CPUID does; one that nobody knows is left to a person.
func TestVendors(t *testing.T) {
	for written, want := range map[string]string{"AMD": "AuthenticAMD", "Intel(R)": "GenuineIntel", "Hygon": "Hygon"} {
		m, r := read(t, written, aGPU("11:00.0", 0))
		if len(r.Faults) != 1 {
			t.Errorf("%s: %v", written, r.Faults)
		}
		if topo.Mend(m); m.CPUs[0].Vendor != want {
			t.Errorf("%s is written as %s, want %s", written, m.CPUs[0].Vendor, want)
		}
	}
}
