package sysfs

import (
	"fmt"
	"strconv"
	"strings"
)

// link is the speed of a lane and the number of lanes between a device and what is above it: what both ends can do. Lanes that do
// not work are not counted; a speed below the best one is how an idle link saves power.
func (r *reader) link(chain []string) (speed string, width int) {
	id := chain[len(chain)-1]
	ends := chain[max(0, len(chain)-2):]
	for _, end := range ends {
		text, _ := r.text(r.paths[end] + "/max_link_speed")
		if s, ok := gigatransfers(text); ok {
			if known, _ := gigatransfers(speed); speed == "" || s < known {
				speed = text
			}
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

// gigatransfers reads a PCI speed such as "16.0 GT/s PCIe". What is not known has other texts.
func gigatransfers(text string) (float64, bool) {
	number, _, ok := strings.Cut(text, " GT/s")
	n, err := strconv.ParseFloat(number, 64)
	return n, ok && err == nil && n > 0 && n < 1000
}

// lanes keeps what can be a number of lanes: devices without a link say 0, and virtual ones 255.
func lanes(n int, ok bool) (int, bool) { return n, ok && n > 0 && n <= 32 }

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
