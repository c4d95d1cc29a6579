package detect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hccl.dev/hccl/graph/sysfs"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/plural"
)

// completer puts what is on the running machine into a machine from a file: at the places that the file has for it, or else at its
// NUMA node, and takes out what is not here.
type completer struct {
	*topo.Report
	file, here *topo.Machine
	rank, port int  // the next that is free
	planned    bool // rings are laid for the machine in the file, whatever is here
}

func (c *completer) complete() {
	c.processors()
	c.absent()
	c.count()
	at := places(c.file)
	known := c.ports(c.file)
	var beside []string
	c.here.Walk(func(cpu *topo.CPU, d *topo.Device) {
		place := at[number(d)]
		switch {
		case d.BusID != "" && place != nil:
			c.fill(place, d, known)
		case len(d.GPUs) > 0 || d.NIC != nil && !c.has(known, d.NIC):
			c.add(cpu, d, known)
			beside = append(beside, label(d))
		}
	})
	if len(beside) > 0 {
		c.Note(0, "devices of this machine have no place in the topology file: "+strings.Join(beside, ", ")+"; each counts as being at its "+
			"NUMA node without a switch", "write them into the file, or make it anew by NCCL_TOPO_DUMP_FILE without NCCL_TOPO_FILE")
	}
}

// count finds the numbers that are free for what is added.
func (c *completer) count() {
	c.file.GPUs(func(_ *topo.Device, g *topo.GPU) { c.rank = max(c.rank, g.Rank+1) })
	c.file.Walk(func(_ *topo.CPU, d *topo.Device) {
		if d.NIC != nil {
			for _, p := range d.NIC.Ports {
				c.port = max(c.port, p.Number+1)
			}
		}
	})
}

// processors: a file may leave out which each NUMA node has, and of what kind.
func (c *completer) processors() {
	for _, cpu := range c.file.CPUs {
		for _, h := range c.here.CPUs {
			if cpu.Affinity == "" && cpu.NUMA == h.NUMA {
				cpu.Affinity = h.Affinity
			}
		}
		if cpu.Arch == "" && len(c.here.CPUs) > 0 {
			h := c.here.CPUs[0]
			cpu.Arch, cpu.Vendor, cpu.Family, cpu.Model = h.Arch, h.Vendor, h.Family, h.Model
		}
	}
}

func number(d *topo.Device) uint64 {
	n, _ := topo.BusNumber(d.BusID)
	return n
}

func places(m *topo.Machine) map[uint64]*topo.Device {
	at := map[uint64]*topo.Device{}
	m.Walk(func(_ *topo.CPU, d *topo.Device) {
		if _, err := topo.BusNumber(d.BusID); err == nil && at[number(d)] == nil {
			at[number(d)] = d
		}
	})
	return at
}

// ports are the names of a machine's ports, also those of their interfaces.
func (c *completer) ports(m *topo.Machine) map[string]bool {
	all := map[string]bool{}
	m.Walk(func(_ *topo.CPU, d *topo.Device) {
		if d.NIC != nil {
			for _, p := range d.NIC.Ports {
				for _, name := range names(p) {
					all[name] = true
				}
			}
		}
	})
	return all
}

func names(p *topo.Port) (all []string) {
	if p.Name != "" {
		all = append(all, p.Name)
	}
	if name := sysfs.InterfaceOf(p); name != "" {
		all = append(all, name)
	}
	return all
}

func anyOf(known map[string]bool, p *topo.Port) bool {
	return slices.ContainsFunc(names(p), func(n string) bool { return known[n] })
}

func (c *completer) has(known map[string]bool, n *topo.NIC) bool {
	return !slices.ContainsFunc(n.Ports, func(p *topo.Port) bool { return !anyOf(known, p) })
}

// fill gives a place of the file the GPUs and ports that are there. What the file says of them counts.
func (c *completer) fill(place, d *topo.Device, known map[string]bool) {
	if len(place.GPUs) == 0 {
		for _, g := range d.GPUs {
			g.Rank = c.rank
			c.rank++
		}
		place.GPUs = d.GPUs
	}
	if d.NIC == nil {
		return
	}
	if place.NIC == nil {
		place.NIC = &topo.NIC{}
	}
	for _, p := range d.NIC.Ports {
		if !anyOf(known, p) {
			p.Number = c.port
			c.port++
			place.NIC.Ports = append(place.NIC.Ports, p)
		}
	}
}

// add puts a device that the file does not have at its NUMA node, without what hangs below it, which is looked at by itself.
func (c *completer) add(cpu *topo.CPU, d *topo.Device, known map[string]bool) {
	alone := *d
	alone.Below, alone.GPUs, alone.NIC = nil, nil, nil
	c.fill(&alone, d, known)
	if len(c.file.CPUs) == 0 {
		bare := *cpu
		bare.Devices = nil
		c.file.CPUs = append(c.file.CPUs, &bare)
	}
	at := max(0, slices.IndexFunc(c.file.CPUs, func(f *topo.CPU) bool { return f.NUMA == cpu.NUMA }))
	c.file.CPUs[at].Devices = append(c.file.CPUs[at].Devices, &alone)
}

func label(d *topo.Device) string {
	if d.NIC == nil {
		return "GPU " + d.BusID
	}
	var all []string
	for _, p := range d.NIC.Ports {
		all = append(all, p.Name)
	}
	return "NIC " + strings.Join(all, " ")
}

// absent takes out what is not here, which nothing could be sent through, and says so once. Where rings are laid for the machine in the
// file all the same, that is no fault.
func (c *completer) absent() {
	ports, line := c.absentPorts()
	gpus := c.absentGPUs()
	if len(gpus)+len(ports) == 0 {
		return
	}
	what := make([]string, 0, 2)
	for _, list := range []struct {
		kind  string
		names []string
	}{{"GPU", gpus}, {"port", ports}} {
		if len(list.names) > 0 {
			what = append(what, fmt.Sprintf("%s (%s)", plural.Of(len(list.names), list.kind), few(list.names)))
		}
	}
	text := "not on this machine, or down: " + strings.Join(what, " and ") + " of the topology file"
	switch {
	case c.planned:
		c.Note(0, text+"; rings are laid as the file says, and data go by what is here", "this is right for a file of the machine that is meant")
	case len(ports) > 0:
		c.Fault(line, text+"; not counted", "the file may be of another machine: make it anew, or correct the names")
	default:
		c.Note(0, text+"; not counted", "the file may be of another machine: make it anew, or correct the bus ids")
	}
}

// few is a list, cut where it is long.
func few(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// absentPorts are named, and the line of the first.
func (c *completer) absentPorts() (absent []string, line int) {
	here := c.ports(c.here)
	c.file.Walk(func(_ *topo.CPU, d *topo.Device) {
		if d.NIC == nil {
			return
		}
		d.NIC.Ports = slices.DeleteFunc(d.NIC.Ports, func(p *topo.Port) bool {
			if p.Name == "" || anyOf(here, p) {
				return false
			}
			absent = append(absent, p.Name)
			line = cmp.Or(line, p.Line)
			return true
		})
	})
	return absent, line
}

// absentGPUs are named by their bus ids. Where the PCI bus is not seen the file is believed.
func (c *completer) absentGPUs() (absent []string) {
	at := places(c.here)
	if len(at) == 0 {
		return nil
	}
	gone := map[*topo.Device]bool{}
	c.file.Walk(func(_ *topo.CPU, d *topo.Device) {
		if len(d.GPUs) > 0 && at[number(d)] == nil {
			d.GPUs, gone[d] = nil, true
			absent = append(absent, d.BusID)
		}
	})
	for _, cpu := range c.file.CPUs {
		cpu.Devices = without(cpu.Devices, gone)
	}
	return absent
}

// without takes devices out that hold nothing else: a place for a GPU that is not here is no place to be completed.
func without(all []*topo.Device, gone map[*topo.Device]bool) []*topo.Device {
	return slices.DeleteFunc(all, func(d *topo.Device) bool {
		d.Below = without(d.Below, gone)
		return gone[d] && d.NIC == nil && len(d.Below) == 0
	})
}
