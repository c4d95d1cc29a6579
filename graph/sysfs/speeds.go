package sysfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// link is the speed of a lane and the number of lanes between a device and what is above it: what both ends can do. Lanes that do
// not work are not counted; a speed below the best one is how an idle link saves power.
func (r *reader) link(chain []string) (speed string, width int) {
	id, best := chain[len(chain)-1], 0.0
	for _, end := range chain[max(0, len(chain)-2):] {
		text, _ := r.text(r.paths[end] + "/max_link_speed")
		if s, ok := gigatransfers(text); ok && (best == 0 || s < best) {
			speed, best = fmt.Sprintf("%.1f GT/s PCIe", s), s
		}
		if w, ok := lanes(r.number(r.paths[end] + "/max_link_width")); ok && (width == 0 || w < width) {
			width = w
		}
	}
	if now, ok := lanes(r.number(r.paths[id] + "/current_link_width")); ok && now < width {
		r.narrow = append(r.narrow, fmt.Sprintf("%s %d of %d", id, now, width))
		width = now
	}
	return speed, width
}

// generations are the speeds of PCI, as the kernel has spelled them.
var generations = map[string]float64{"2.5": 2.5, "5": 5, "5.0": 5, "8": 8, "8.0": 8, "16": 16, "16.0": 16, "32": 32, "32.0": 32,
	"64": 64, "64.0": 64}

// gigatransfers reads a PCI speed such as "16.0 GT/s PCIe". What is not known has other texts.
func gigatransfers(text string) (float64, bool) {
	number, _, ok := strings.Cut(text, " GT/s")
	n, known := generations[number]
	return n, ok && known
}

// lanes keeps what is a number of lanes: devices without a link say 0, and virtual ones 255.
func lanes(n int, ok bool) (int, bool) {
	return n, ok && slices.Contains([]int{1, 2, 4, 8, 12, 16, 32}, n)
}

const (
	usual    = 10_000    // Mb/s that a port counts as whose speed is not told
	fastest  = 3_200_000 // Mb/s; what is above is no speed
	perGbits = 1000
)

// speed is that of an interface in Mb/s. Virtual ones do not know it, and drivers say so in several ways: by an error, -1 or 2^32-1.
func (r *reader) speed(folder string) (mbps int, known bool) {
	n, ok := r.number(folder + "/speed")
	if !ok || n <= 0 || n > fastest {
		return usual, false
	}
	return n, true
}

// rate reads that of an RDMA port, such as "400 Gb/sec (4X NDR)", in Mb/s.
func rate(text string) (mbps int, known bool) {
	number, _, ok := strings.Cut(text, " Gb/sec")
	g, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(g > 0 && g*perGbits <= fastest) {
		return usual, false
	}
	return int(g * perGbits), true
}

// guid writes an RDMA device's number as NCCL does: b83f:d203:00b1:1234 becomes 0xb83fd20300b11234.
func guid(text string) string {
	n, err := strconv.ParseUint(strings.ReplaceAll(text, ":", ""), 16, 64)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%#x", n)
}
