package topo

import (
	"fmt"
	"slices"
	"strings"
)

// Mend makes a machine that Clean has looked at say what Clean took it for, so that it is written without the faults that were told of
// it: a bus id that is there again is gone, a speed that is none is the one that counted. A vendor's name that is not the processor's own
// is spelled as the processor does, which may change what the links between NUMA nodes count. What only a person can know stays.
func Mend(m *Machine) {
	for _, c := range m.CPUs {
		c.mend()
	}
	join := &joiner{gpus: map[uint64]*Device{}, cards: map[string]*Device{}, taken: map[uint64]bool{}, own: map[uint64]*Device{}}
	m.Walk(func(_ *CPU, d *Device) { d.mend() })
	for _, c := range m.CPUs {
		c.Devices = join.devices(c.Devices)
	}
	m.Walk(func(_ *CPU, d *Device) { join.rename(d) })
}

// makers are parts of names that people write for those of CPUID.
var makers = []struct{ part, vendor string }{{"amd", amd}, {"intel", intel}}

func (c *CPU) mend() {
	if slices.Contains([]string{intel, amd, zhaoxin, shanghai}, c.Vendor) {
		return
	}
	for _, m := range makers {
		if c.Arch == "x86_64" && strings.Contains(strings.ToLower(c.Vendor), m.part) {
			c.Vendor = m.vendor
		}
	}
}

func (d *Device) mend() {
	if _, known := laneUnits(d.Speed); !known && d.Speed != "" {
		d.Speed = "8.0 GT/s PCIe"
	}
	switch role := d.Class.Role(); {
	case d.BusID == "":
	case len(d.GPUs) > 0 && (role == RoleNIC || !d.Class.known()):
		d.Class = ClassGPU
	case d.NIC != nil && len(d.GPUs) == 0 && (role == RoleGPU || !d.Class.known()):
		d.Class = ClassNIC
	case !d.Class.known():
		d.Class = ClassBridge
	}
	d.GPUs = slices.DeleteFunc(d.GPUs, func(g *GPU) bool { return g.Rank < 0 }) // nobody uses them
	if d.NIC != nil {
		d.NIC.mend()
	}
}

func (n *NIC) mend() {
	n.Ports = slices.DeleteFunc(n.Ports, func(p *Port) bool { return p.Number < 0 })
	for _, p := range n.Ports {
		if p.Mbps <= 0 {
			p.Mbps = portDefault
		}
		p.Mbps = min(p.Mbps, widestPort) // wider than any link to it
	}
}

// joiner puts together what stands in one place of the bus.
type joiner struct {
	gpus  map[uint64]*Device // as Build has them
	cards map[string]*Device // likewise
	taken map[uint64]bool
	own   map[uint64]*Device // who keeps each place
	free  int                // the next bus id that may be
}

// devices are those of a parent that stay: of GPUs and cards in one place the first, with what the others hold.
func (j *joiner) devices(all []*Device) []*Device {
	return slices.DeleteFunc(all, func(d *Device) bool {
		d.Below = j.devices(d.Below)
		if d.BusID == "" {
			return false
		}
		bare := len(d.Below) == 0
		bus, _ := BusNumber(d.BusID)
		switch first, card := j.gpus[bus], j.cards[d.BusID]; {
		case bare && len(d.GPUs) > 0 && d.NIC == nil && first != nil:
			first.GPUs = append(first.GPUs, d.GPUs...)
			return true
		case len(d.GPUs) > 0:
			j.gpus[bus] = d
		case bare && d.NIC != nil && card != nil:
			card.NIC.Ports = append(card.NIC.Ports, d.NIC.Ports...)
			return true
		case d.NIC != nil:
			j.cards[d.BusID] = d
		case bare && d.Class.Role() != RoleSwitch && j.taken[bus]:
			return true // an empty place, once more
		}
		j.taken[bus] = true
		return false
	})
}

// rename gives a place of its own to what has that of another: a switch, or a card in the place of a GPU.
func (j *joiner) rename(d *Device) {
	bus, err := BusNumber(d.BusID)
	if err != nil {
		return
	}
	if j.own[bus] == nil {
		j.own[bus] = d
		return
	}
	for ; ; j.free++ {
		id := fmt.Sprintf("ffff:%02x:%02x.0", 0xff-j.free/32, j.free%32)
		if n, _ := BusNumber(id); !j.taken[n] {
			d.BusID, j.taken[n] = id, true
			return
		}
	}
}
