package topo

import (
	"fmt"
	"slices"
	"strconv"

	"hccl.dev/hccl/internal/plural"
)

// at is a place on the bus as it is taken: by a GPU, a NIC or another device, of which each kind is looked for by itself.
type at struct {
	bus  uint64
	gpu  bool
	card bool
}

// places looks at each device's place on the bus and its link.
func (c *cleaner) places() {
	first, as, ranks, vague := map[uint64]*Device{}, map[at]bool{}, map[int]bool{}, 0
	c.Walk(func(_ *CPU, d *Device) {
		if d.BusID == "" {
			return
		}
		bus, _ := BusNumber(d.BusID)
		here := at{bus, len(d.GPUs) > 0, d.NIC != nil}
		if before := first[bus]; before != nil {
			c.Fault(d.Line, fmt.Sprintf("bus id %s is there again (first in line %d); %s", d.BusID, before.Line, again(d, as[here], ranks)),
				"every device has a bus id of its own: lspci -D shows it")
		} else {
			first[bus] = d
		}
		as[here] = true
		for _, g := range d.GPUs {
			ranks[g.Rank] = true
		}
		c.class(d)
		if d.Speed == "" || d.Width == 0 {
			vague++
		}
		c.speed(d)
	})
	if vague > 0 {
		c.Note(0, fmt.Sprintf("no link_speed or no link_width is known of %s; 8 GT/s and 16 lanes are taken", plural.Of(vague, "device")),
			"write the link's speed and width as the real host has them (lspci -vv: LnkSta)")
	}
}

// again says what becomes of a device whose place is taken; like: by one of its kind.
func again(d *Device, like bool, ranks map[int]bool) string {
	used := slices.ContainsFunc(d.GPUs, func(g *GPU) bool { return g.Rank >= 0 && !ranks[g.Rank] })
	switch {
	case len(d.GPUs) > 0 && !used:
		return "its GPU is not used, as nothing tells it from another"
	case len(d.GPUs) > 0 && like:
		return "its GPU counts as a part of the first"
	case d.NIC != nil && like:
		return "its ports count to the first place"
	case len(d.GPUs) > 0 || d.NIC != nil:
		return "both count, each as what it is"
	case d.Class.Role() == RoleSwitch:
		return "it counts as a switch of its own"
	}
	return "it does not count"
}

func (c *cleaner) class(d *Device) {
	holds := "a GPU"
	if d.NIC != nil {
		holds = "a NIC"
	}
	switch {
	case !d.Class.known() && d.Class == "":
		c.Fault(d.Line, fmt.Sprintf("pci %s has no class; it counts as a switch", d.BusID), "write the class as lspci -Dn has it, as 0x060400")
	case !d.Class.known():
		c.Fault(d.Line, fmt.Sprintf("pci %s has class %.40q, which is not known; it counts as a switch", d.BusID, string(d.Class)),
			"write 0x030200 for a GPU, 0x020000 or 0x020700 for a NIC, 0x060400 for a switch")
	case len(d.GPUs) > 0 && d.NIC == nil && d.Class.Role() == RoleNIC, d.NIC != nil && len(d.GPUs) == 0 && d.Class.Role() == RoleGPU:
		c.Fault(d.Line, fmt.Sprintf("pci %s holds %s but has class %s; what it holds counts", d.BusID, holds, d.Class),
			"correct the class, or move the entry")
	}
}

var widths = []int{0, 1, 2, 4, 8, 12, 16, 32}

func (c *cleaner) speed(d *Device) {
	if _, known := laneUnits(d.Speed); !known && d.Speed != "" {
		c.Fault(d.Line, fmt.Sprintf("pci %s has link_speed %.40q, which begins with no known speed; it counts as 8 GT/s", d.BusID, d.Speed),
			"write it as the kernel does: \"2.5 GT/s PCIe\", 5.0, 8.0, 16.0, 32.0 or 64.0")
	}
	if !slices.Contains(widths, d.Width) {
		c.Fault(d.Line, fmt.Sprintf("pci %s has a link of %d lanes, which PCI does not know; it counts as written", d.BusID, d.Width),
			"write 1, 2, 4, 8 or 16")
	}
}

// gpus: a rank sits on one GPU, and CUDA's numbers are no rank's twice.
func (c *cleaner) gpus() {
	ranks, numbers := map[int]*GPU{}, map[int]*Device{}
	on := map[*GPU]*Device{}
	c.GPUs(func(d *Device, g *GPU) {
		on[g] = d
		if before := ranks[g.Rank]; before != nil && g.Rank >= 0 {
			g.Rank = -1
			if on[before] != d && same(on[before], d) {
				return // the same GPU once more, which is told of its place
			}
			c.Fault(g.Line, fmt.Sprintf("rank %d is there again (first in line %d); this GPU is not used", before.Rank, before.Line),
				"give each GPU its own rank")
			return
		}
		ranks[g.Rank] = g
		if other := numbers[g.Number]; other != nil && !same(other, d) {
			c.Fault(g.Line, fmt.Sprintf("GPUs at %s and %s both have dev %d; NICs are shared out among GPUs by it", other.BusID, d.BusID, g.Number),
				"give each GPU its own dev")
		}
		numbers[g.Number] = d
	})
}

// same tells whether two devices have one place on the bus.
func same(a, b *Device) bool {
	x, _ := BusNumber(a.BusID)
	y, _ := BusNumber(b.BusID)
	return x == y
}

const (
	widestPort = 3_200_000 // Mb/s; twice the fastest port there is
)

func (c *cleaner) ports() {
	var all []*Port
	taken := map[int]*Port{}
	c.Walk(func(_ *CPU, d *Device) {
		if d.NIC != nil {
			all = append(all, d.NIC.Ports...)
			c.narrow(d)
		}
	})
	var double []*Port
	for _, p := range all {
		c.portSpeed(p)
		if before := taken[p.Number]; before != nil && p.Number >= 0 {
			double = append(double, p)
		} else {
			taken[p.Number] = p
		}
	}
	free := 0
	for _, p := range double {
		for ; taken[free] != nil; free++ {
		}
		c.Fault(p.Line, fmt.Sprintf("port %s has dev %d, as the one of line %d; it is taken for %d", p.label(), p.Number,
			taken[p.Number].Line, free),
			"give each port its own dev")
		p.Number, taken[free] = free, p
	}
}

// narrow notices a card whose link carries less than half of what its ports do: the link is described wrongly, or several cards are
// described as one.
func (c *cleaner) narrow(d *Device) {
	sum := 0.0
	for _, p := range d.NIC.Ports {
		sum += p.Bandwidth()
	}
	if link := d.Bandwidth(); d.Speed != "" && d.Width > 0 && link < sum/2 {
		c.Note(d.Line, fmt.Sprintf("the ports of NIC %s have %.4g GB/s together, but its link has %.4g GB/s and limits them", d.BusID, sum, link),
			"compare link_speed and link_width with lspci -vv (LnkSta), and give each card a <pci> of its own")
	}
}

func (p *Port) label() string {
	if p.Name != "" {
		return p.Name
	}
	return strconv.Itoa(p.Number)
}

func (c *cleaner) portSpeed(p *Port) {
	switch {
	case p.Mbps <= 0:
		c.Fault(p.Line, fmt.Sprintf("port %s has no speed; it counts as 10 Gb/s", p.label()), "write speed in Mb/s, as 400000 for 400 Gb/s")
	case p.Mbps > widestPort:
		c.Fault(p.Line, fmt.Sprintf("port %s has speed %d Mb/s, which is %.4g GB/s and more than any port has; it counts as written", p.label(),
			p.Mbps, p.Bandwidth()), "write speed in Mb/s, as 400000 for 400 Gb/s")
	}
}
