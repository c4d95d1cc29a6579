package topo

import (
	"strings"
	"time"
)

// Bandwidths in GB/s, one direction, that NCCL 2.30 assumes of links (its src/graph/topo.h has them).
const (
	LocalBW     = 5000.0 // inside a device: never the limit
	unnamedPCI  = 60     // a speed text that is not known counts as 8 GT/s
	fullWidth   = 16     // lanes, where the width is not known
	portDefault = 10000  // Mb/s, where the speed is not known
)

// pciLane is the speed of a lane by the beginning of its text, in units of 12.5 MB/s: the kernel has spelled it in two ways. The list
// is NCCL's, and what it lacks ("64 GT/s", "32.0 GT/s" alone) counts as 8 GT/s there and here, but is a fault here.
var pciLane = []struct {
	text  string
	units int
}{
	{"2.5 GT/s", 15}, {"5 GT/s", 30}, {"8 GT/s", 60}, {"16 GT/s", 120}, {"32 GT/s", 240},
	{"5.0 GT/s PCIe", 30}, {"8.0 GT/s PCIe", 60}, {"16.0 GT/s PCIe", 120}, {"32.0 GT/s PCIe", 240}, {"64.0 GT/s PCIe", 480},
}

func laneUnits(speed string) (units int, known bool) {
	for _, l := range pciLane {
		if strings.HasPrefix(speed, l.text) {
			return l.units, true
		}
	}
	return unnamedPCI, false
}

// Bandwidth is what the device's link to its parent carries in one direction, GB/s.
func (d *Device) Bandwidth() float64 {
	units, _ := laneUnits(d.Speed)
	width := d.Width
	if width <= 0 {
		width = fullWidth
	}
	return float64(width*units) / 80
}

// nvlinkOf has, by compute capability, the bandwidth of one NVLink and how many a GPU can have.
var nvlinkOf = []struct {
	sm   int
	bw   float64
	most int
}{
	{120, 40.1, 0}, {100, 40.1, 18}, {90, 20.6, 18}, {87, 20, 0}, {86, 12, 4}, {80, 20, 12}, {75, 20, 2}, {70, 20, 6}, {60, 18, 4},
}

// NVLinkBandwidth is what one NVLink of a GPU carries in one direction, GB/s, by its compute capability.
func NVLinkBandwidth(sm int) float64 {
	for _, n := range nvlinkOf {
		if sm >= n.sm {
			return n.bw
		}
	}
	return 20
}

// Makers of processors, as CPUID names them.
const (
	intel    = "GenuineIntel"
	amd      = "AuthenticAMD"
	zhaoxin  = "CentaurHauls"
	shanghai = "  Shanghai  "
)

// busBW is the bandwidth between two NUMA nodes, by the kind of processor.
func (c *CPU) busBW() float64 {
	switch c.Arch {
	case "ppc64":
		return 32
	case "arm64":
		return 6
	case "x86_64":
		return c.x86BusBW()
	}
	return LocalBW
}

func (c *CPU) x86BusBW() float64 {
	switch c.Vendor {
	case intel:
		return c.intelBusBW()
	case amd:
		return 16
	case zhaoxin, shanghai:
		if c.Family == 7 && c.Model == 0x5b { // Yongfeng
			return 9
		}
		return 6
	}
	return LocalBW
}

// The models are those of the first Skylake, Sapphire Rapids and Emerald Rapids server parts.
func (c *CPU) intelBusBW() float64 {
	switch {
	case c.Family == 6 && c.Model >= 0xcf:
		return 40
	case c.Family == 6 && c.Model >= 0x8f:
		return 22
	case c.Family == 6 && c.Model >= 0x55:
		return 10
	}
	return 6
}

// Latencies of one hop, rules of thumb: NCCL's for its ring with the LL protocol over NVLink, PCI and a network.
const (
	nvlinkLatency = 600 * time.Nanosecond
	pciLatency    = time.Microsecond
	netLatency    = 2700 * time.Nanosecond
)

// AMD reports whether it is AMD's x86.
func (c *CPU) AMD() bool { return c.Arch == "x86_64" && c.Vendor == amd }

// Intel reports whether it is Intel's x86.
func (c *CPU) Intel() bool { return c.Arch == "x86_64" && c.Vendor == intel }

// nvlinkMost is how many NVLinks a GPU can have; not known for those that are older, and where the file does not say what it is.
func nvlinkMost(sm int) (most int, known bool) {
	for _, n := range nvlinkOf {
		if sm >= n.sm {
			return n.most, true
		}
	}
	return 0, false
}
