package topo

import (
	"fmt"
	"slices"

	"hccl.dev/hccl/internal/plural"
)

// between names the NVLinks of one direction between two GPUs.
type between struct{ from, to uint64 }

// nvlinks takes out links that lead nowhere, those beyond what a GPU has, and those of which the other end knows nothing.
func (c *cleaner) nvlinks() {
	roles, gpus := map[uint64]Role{}, map[uint64]bool{}
	c.Walk(func(_ *CPU, d *Device) {
		if bus, err := BusNumber(d.BusID); err == nil {
			roles[bus] = d.Class.Role()
			gpus[bus] = gpus[bus] || len(d.GPUs) > 0
		}
	})
	absent := 0
	c.GPUs(func(d *Device, g *GPU) {
		g.NVLinks = slices.DeleteFunc(g.NVLinks, func(l *NVLink) bool { return l.Count < 0 || c.leadsNowhere(d, l) })
		g.C2C = slices.DeleteFunc(g.C2C, func(l *ChipLink) bool { return c.empty(d, l) })
		c.tooMany(d, g)
		for _, l := range g.NVLinks {
			if bus, err := BusNumber(l.Target); err == nil && l.Class.Role() == RoleGPU && !gpus[bus] {
				if role, here := roles[bus]; here && role != RoleGPU {
					c.Fault(l.Line, fmt.Sprintf("an NVLink leads to pci %s, which is no GPU; it is ignored", l.Target), "correct target or tclass")
				} else {
					absent += l.Count
				}
			}
		}
	})
	if absent > 0 {
		c.Note(0, fmt.Sprintf("NVLinks to GPUs that are not in the file are not counted: %d of them", absent),
			"this is right if ranks use only some of the host's GPUs")
	}
	c.uneven(gpus)
}

func (c *cleaner) leadsNowhere(d *Device, l *NVLink) bool {
	own, _ := BusNumber(d.BusID)
	target, err := BusNumber(l.Target)
	switch {
	case l.Count == 0:
		c.Fault(l.Line, fmt.Sprintf("an NVLink entry of GPU %s counts 0 links; it is ignored", d.BusID),
			"write how many links there are, or take it out")
	case l.Class.Role() == RoleGPU && err != nil:
		c.Fault(l.Line, fmt.Sprintf("an NVLink of GPU %s leads to %.40q, which is no bus id; it is ignored", d.BusID, l.Target),
			"write the other GPU's bus id")
	case err == nil && target == own:
		c.Fault(l.Line, fmt.Sprintf("an NVLink of GPU %s leads to itself; it is ignored", d.BusID),
			"write the bus id of the GPU at the other end")
	case !l.Class.known():
		c.Fault(l.Line, fmt.Sprintf("an NVLink of GPU %s leads to class %.40q, which is not known; it counts as leading to an NVSwitch", d.BusID,
			string(l.Class)), "write tclass 0x030200 for a GPU, 0x068000 for an NVSwitch, 0x068001 for the CPU")
		return false
	default:
		return false
	}
	return true
}

func (c *cleaner) empty(d *Device, l *ChipLink) bool {
	if l.Count > 0 && l.MBps > 0 {
		return false
	}
	c.Fault(l.Line, fmt.Sprintf("the C2C link of GPU %s has no count or no bw; it is ignored", d.BusID), "write count, and bw in MB/s of each")
	return true
}

// tooMany: one entry with more links than the GPU has is cut to what it has. Where only the sum is too large, the file does not
// say which entries are wrong, so they stay.
func (c *cleaner) tooMany(d *Device, g *GPU) {
	most, known := nvlinkMost(g.SM)
	sum := 0
	for _, l := range g.NVLinks {
		if known && l.Count > most {
			c.Fault(l.Line, fmt.Sprintf("GPU %s has %d NVLinks here, more than the %d of its kind (sm %d); %d counted", d.BusID, l.Count,
				most, g.SM, most), "write how many links lead there")
			l.Count = most
		}
		sum += l.Count
	}
	g.NVLinks = slices.DeleteFunc(g.NVLinks, func(l *NVLink) bool { return l.Count == 0 })
	if known && sum > most && len(g.NVLinks) > 0 {
		c.Fault(g.Line, fmt.Sprintf("GPU %s has %d NVLinks in all, more than the %d of its kind (sm %d); all are counted, since the file does "+
			"not say which are wrong", d.BusID, sum, most, g.SM),
			"write how many links lead to each target; GPUs that meet in NVSwitches have one entry with tclass 0x068000")
	}
}

// uneven: an NVLink has two ends. Where the two GPUs differ about how many there are, the lower number counts.
func (c *cleaner) uneven(gpus map[uint64]bool) {
	counts := map[between]int{}
	c.eachPair(func(p between, _ *Device, l *NVLink) { counts[p] += l.Count })
	told := map[between]bool{}
	c.eachPair(func(p between, d *Device, l *NVLink) {
		here, there := counts[p], counts[between{p.to, p.from}]
		if here <= there || !gpus[p.to] {
			return
		}
		if !told[p] {
			told[p] = true
			c.Fault(l.Line, fmt.Sprintf("GPU %s has %s to %s, which has %d back; %d counted in each direction", d.BusID,
				plural.Of(here, "NVLink"), l.Target, there, there), "write the same count at both ends")
		}
		cut := min(l.Count, here-there)
		l.Count, counts[p] = l.Count-cut, here-cut
	})
	c.GPUs(func(_ *Device, g *GPU) {
		g.NVLinks = slices.DeleteFunc(g.NVLinks, func(l *NVLink) bool { return l.Count == 0 })
	})
}

// eachPair visits the NVLink entries between two GPUs.
func (c *cleaner) eachPair(visit func(p between, d *Device, l *NVLink)) {
	c.GPUs(func(d *Device, g *GPU) {
		own, err := BusNumber(d.BusID)
		for _, l := range g.NVLinks {
			if target, bad := BusNumber(l.Target); err == nil && bad == nil && l.Class.Role() == RoleGPU {
				visit(between{own, target}, d, l)
			}
		}
	})
}
