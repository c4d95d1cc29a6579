package ncclxml

import (
	"fmt"

	"hccl.dev/hccl/graph/topo"
)

const anyInt = 1<<31 - 1

// device reads a pci element and all below it; nil if it has no place on the bus.
func (r *reader) device(e *element) *topo.Device {
	d := &topo.Device{Line: e.line, BusID: r.text(e, "busid"), Class: topo.Class(r.text(e, "class")), Speed: r.text(e, "link_speed"),
		Width: r.integer(e, "link_width", bounds{0, 64, 0}), IDs: r.ids(e)}
	d.Extra = r.rest(e)
	if _, err := topo.BusNumber(d.BusID); err != nil {
		r.fault(e, fmt.Sprintf("<pci> has busid %q and is ignored%s", shorten(d.BusID), losses(e)),
			"write domain:bus:device.function, as lspci -D shows it")
		return nil
	}
	for _, child := range e.children {
		r.below(d, child, e)
	}
	r.nesting(d, e)
	return d
}

func (r *reader) below(d *topo.Device, child, e *element) {
	switch child.name {
	case "pci":
		if sub := r.device(child); sub != nil {
			d.Below = append(d.Below, sub)
		}
	case "gpu":
		d.GPUs = append(d.GPUs, r.gpu(child))
	case "nic":
		if d.NIC != nil {
			r.fault(child, fmt.Sprintf("a second <nic> in pci %s is ignored%s", d.BusID, losses(child)), "put all ports of a card into one <nic>")
			return
		}
		d.NIC = r.nic(child)
	default:
		r.misplaced(child, e)
	}
}

// nesting reports devices that NCCL loses, because it takes a pci element for one thing: a card, a GPU or a switch.
func (r *reader) nesting(d *topo.Device, e *element) {
	if d.NIC != nil && len(d.GPUs) > 0 {
		r.fault(e, fmt.Sprintf("pci %s holds a GPU and a NIC; both are kept, but NCCL takes it for a NIC and loses the GPU", d.BusID),
			"give each a <pci> of its own, with its own busid")
	}
	leaf := "NIC"
	if d.NIC == nil {
		leaf = "GPU"
	}
	if len(d.Below) > 0 && (d.NIC != nil || len(d.GPUs) > 0 && d.Class.Role() != topo.RoleSwitch) {
		for _, child := range e.children {
			if child.name == "pci" {
				r.fault(child, fmt.Sprintf("pci %s stands below a %s and is ignored%s", shorten(r.text(child, "busid")), leaf, losses(child)),
					"put it beside pci "+d.BusID+", below the same switch")
			}
		}
		clear(r.taken)
		d.Below = nil
	}
}

func (r *reader) ids(e *element) (ids topo.IDs) {
	for _, name := range []string{"vendor", "device", "subsystem_vendor", "subsystem_device"} {
		_, here := e.attr(name)
		ids.Given = ids.Given || here
	}
	short := bounds{0, 0xffff, 0}
	ids.Vendor, ids.Device = r.integer(e, "vendor", short), r.integer(e, "device", short)
	ids.SubVendor, ids.SubProduct = r.integer(e, "subsystem_vendor", short), r.integer(e, "subsystem_device", short)
	return ids
}

func (r *reader) gpu(e *element) *topo.GPU {
	r.needs(e, "rank", "it is not used", "number the GPUs with rank=\"0\" and so on")
	r.needs(e, "sm", "the speed of its NVLinks is a guess", "write its compute capability, sm=\"90\" for 9.0")
	g := &topo.GPU{Line: e.line, Number: r.integer(e, "dev", bounds{0, 1 << 20, 0}), Rank: r.integer(e, "rank", bounds{-1, 1 << 24, -1}),
		SM: r.integer(e, "sm", bounds{0, 1 << 16, 0}), GDR: r.flag(e, "gdr", false)}
	g.Extra = r.rest(e)
	for _, child := range e.children {
		switch child.name {
		case "nvlink":
			g.NVLinks = append(g.NVLinks, r.nvlink(child))
		case "c2c":
			g.C2C = append(g.C2C, &topo.ChipLink{Line: child.line, Count: r.integer(child, "count", bounds{0, 1 << 16, 0}),
				MBps: r.integer(child, "bw", bounds{0, 100_000_000, 0})})
		default:
			r.misplaced(child, e)
		}
		clear(r.taken)
	}
	return g
}

func (r *reader) nvlink(e *element) *topo.NVLink {
	for _, name := range []string{"count", "target", "tclass"} {
		r.needs(e, name, "the entry is ignored", "write how many links lead where: count, the other end's bus id as target, its class as tclass")
		if _, ok := e.attr(name); !ok {
			return &topo.NVLink{Count: -1}
		}
	}
	return &topo.NVLink{Line: e.line, Target: r.text(e, "target"), Class: topo.Class(r.text(e, "tclass")),
		Count: r.integer(e, "count", bounds{0, 1 << 16, -1})}
}

func (r *reader) nic(e *element) *topo.NIC {
	n := &topo.NIC{Line: e.line}
	for _, child := range e.children {
		if child.name == "net" {
			n.Ports = append(n.Ports, r.port(child))
		} else {
			r.misplaced(child, e)
		}
	}
	return n
}

func (r *reader) port(e *element) *topo.Port {
	r.needs(e, "dev", "it is not used", "number the ports with dev=\"0\" and so on")
	p := &topo.Port{Line: e.line, Name: r.text(e, "name"), Number: r.integer(e, "dev", bounds{-1, 1 << 20, -1}),
		Mbps: r.integer(e, "speed", bounds{-anyInt, anyInt, 0}), Port: r.integer(e, "port", bounds{0, 1 << 16, 0}),
		Latency: r.number(e, "latency"), GUID: r.text(e, "guid"), MaxConn: r.integer(e, "maxconn", bounds{0, anyInt, 0}),
		GDR: r.flag(e, "gdr", false), Coll: r.flag(e, "coll", false), Off: !r.flag(e, "net", true)}
	p.Extra = r.rest(e)
	return p
}
