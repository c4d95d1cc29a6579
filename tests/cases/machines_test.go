package cases

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Machines as topology files have them.

// processor is a <cpu> of a topology file.
func processor(numa int, vendor, devices string) string {
	return fmt.Sprintf("<cpu numaid=\"%d\" arch=\"x86_64\" vendor=%q familyid=\"6\" modelid=\"143\" affinity=\"\">\n%s</cpu>\n",
		numa, vendor, devices)
}

func system(cpus ...string) string {
	return "<system version=\"1\">\n" + strings.Join(cpus, "") + "</system>\n"
}

// card is a NIC of one port.
func card(bus int, name string, dev, speed int) string {
	return fmt.Sprintf("<pci busid=\"0001:%02x:00.0\" class=\"0x020000\" link_speed=\"\" link_width=\"0\"><nic><net name=%q dev=\"%d\" "+
		"speed=\"%d\" port=\"1\"/></nic></pci>\n", bus, name, dev, speed)
}

func gpu(bus, dev int) string {
	return fmt.Sprintf("<pci busid=\"0001:%02x:00.0\" class=\"0x030200\" link_speed=\"\" link_width=\"0\"><gpu dev=\"%d\" sm=\"80\" "+
		"rank=\"%d\" gdr=\"1\"/></pci>\n", bus, dev, dev)
}

// file writes a text where each rank can read it.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "topo.xml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// flat is what a virtual machine shows: everything at one bridge of a NUMA node that is not known.
func flat() string {
	var all strings.Builder
	for k := range 8 {
		all.WriteString(gpu(k+1, k) + card(k+16, fmt.Sprint("e", k), k, 100000))
	}
	return system(processor(-1, "GenuineIntel", all.String()))
}

// levels is the same with a switch for each two GPUs and two NICs.
func levels() string {
	var cpus [2]string
	for k := range 4 {
		below := gpu(2*k+1, 2*k) + gpu(2*k+2, 2*k+1) + card(2*k+16, fmt.Sprint("e", 2*k), 2*k, 100000) +
			card(2*k+17, fmt.Sprint("e", 2*k+1), 2*k+1, 100000)
		below = strings.NewReplacer(`link_speed=""`, `link_speed="16.0 GT/s PCIe"`, `link_width="0"`, `link_width="16"`).Replace(below)
		cpus[k/2] += fmt.Sprintf("<pci busid=\"0001:%02x:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">\n"+
			"%s</pci>\n", k+32, below)
	}
	return system(processor(0, "GenuineIntel", cpus[0]), processor(1, "GenuineIntel", cpus[1]))
}
