package sysfs

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"hccl.dev/hccl/graph/topo"
)

const bus = "sys/bus/pci/devices"

var busID = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// Makers of what is looked for.
const (
	nvidia = 0x10de
	amd    = 0x1002
	hygon  = 0x1d94
)

// pci finds where all devices are and puts those into the machine that matter by themselves: GPUs and NVSwitches. Cards follow with
// their ports, and switches with what hangs on them.
func (r *reader) pci() {
	ids, err := r.names(bus)
	if len(ids) == 0 {
		why := "no device"
		if err != nil {
			why = cause(err)
		}
		r.Note(0, "the PCI bus is not seen ("+bus+": "+why+"), and so no GPU and no card's place",
			"containers and some virtual machines hide it: mount /sys as it is")
		return
	}
	var odd []string
	for _, id := range ids {
		if !r.locate(id) {
			odd = append(odd, id)
		}
	}
	if len(odd) > 0 {
		r.Note(0, fmt.Sprintf("devices of the PCI bus cannot be read and are left out: %s", some(odd)), "look at "+bus)
	}
	for _, id := range ids {
		if r.wanted(id) {
			r.device(id)
		}
	}
}

// locate finds a device's files and class. Its place in the tree is its path, which the link in the list of devices leads to.
func (r *reader) locate(id string) bool {
	folder := r.target(path.Join(bus, id))
	if path.Base(folder) != id {
		folder = path.Join(bus, id) // no link: the device is known, its place in the tree is not
	}
	class, ok := r.text(folder + "/class")
	if !ok || !busID.MatchString(id) {
		return false
	}
	r.paths[id], r.class[id] = folder, topo.Class(class)
	return true
}

// wanted tells devices that stand in a topology by themselves from all others, such as the screen of a maintenance processor.
func (r *reader) wanted(id string) bool {
	in := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(string(r.class[id]), p) })
	}
	switch {
	case in("0x0302"):
		return true
	case in("0x0300", "0x0380", "0x0680", "0x1200"):
		maker, _ := r.hex(r.paths[id] + "/vendor")
		return maker == nvidia && in("0x0300", "0x0680") || (maker == amd || maker == hygon) && in("0x0300", "0x0380", "0x1200")
	}
	return false
}

// chain are the bridges above a device, from the root down, and the device. Other parts of the path are no place on the bus.
func (r *reader) chain(id string) []string {
	var up []string
	for part := range strings.SplitSeq(path.Dir(r.paths[id]), "/") {
		if strings.HasPrefix(string(r.class[part]), "0x0604") {
			up = append(up, part)
		}
	}
	return append(up, id)
}

// device puts a device into the machine, below its switches, and these with it. The kernel shows two bridges for each step of the
// tree, the port above the link and, below it, the port by which the switch is reached; the latter stands for the switch, as in
// NCCL's files:
//
//	root port ── switch's upper port ── its lower port ── GPU
//	                    switch                            GPU
func (r *reader) device(id string) *topo.Device {
	if d := r.devices[id]; d != nil {
		return d
	}
	chain := r.chain(id)
	d := r.describe(id, chain)
	r.devices[id] = d
	if len(chain) > 2 {
		up := r.device(chain[len(chain)-3])
		up.Below = append(up.Below, d)
		return d
	}
	cpu := r.cpu(r.nearest(chain))
	cpu.Devices = append(cpu.Devices, d)
	return d
}

// nearest is the first NUMA node that a device or a bridge above it names.
func (r *reader) nearest(chain []string) int {
	for _, id := range chain {
		if n := r.numa(r.paths[id]); n >= 0 {
			return n
		}
	}
	return -1
}

func (r *reader) describe(id string, chain []string) *topo.Device {
	d := &topo.Device{BusID: id, Class: r.class[id]}
	for _, number := range []struct {
		file string
		to   *int
	}{{"vendor", &d.IDs.Vendor}, {"device", &d.IDs.Device}, {"subsystem_vendor", &d.IDs.SubVendor}, {"subsystem_device", &d.IDs.SubProduct}} {
		if n, ok := r.hex(r.paths[id] + "/" + number.file); ok && n <= 0xffff {
			*number.to, d.IDs.Given = n, true
		}
	}
	d.Speed, d.Width = r.link(chain)
	return d
}
