package ncclxml

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"hccl.dev/hccl/graph/topo"
)

// Write writes a machine in NCCL's form, which NCCL and Read accept. Attributes that are not understood are written as they were.
func Write(out io.Writer, m *topo.Machine) error {
	w := &writer{out: bufio.NewWriter(out)}
	w.open("system", pairs{}.number("version", 1), nil)
	for _, c := range m.CPUs {
		w.cpu(c)
	}
	w.end("system")
	return w.out.Flush() // a writer keeps its first error
}

type writer struct {
	out   *bufio.Writer
	depth int
}

// pairs are attributes in the order in which NCCL writes them.
type pairs []topo.Attr

func (p pairs) text(name, value string) pairs { return append(p, topo.Attr{Name: name, Value: value}) }

func (p pairs) given(name, value string) pairs {
	if value == "" {
		return p
	}
	return p.text(name, value)
}

func (p pairs) number(name string, n int) pairs { return p.text(name, fmt.Sprint(n)) }
func (p pairs) hex(name string, n int) pairs    { return p.text(name, fmt.Sprintf("0x%04x", n)) }

func (p pairs) flag(name string, on bool) pairs {
	if on {
		return p.number(name, 1)
	}
	return p.number(name, 0)
}

func (w *writer) start(name string, attrs pairs, extra []topo.Attr) {
	w.print(strings.Repeat("  ", w.depth) + "<" + name)
	for _, a := range append(attrs[:len(attrs):len(attrs)], extra...) {
		w.print(" " + a.Name + "=\"")
		_ = xml.EscapeText(w.out, []byte(a.Value))
		w.print("\"")
	}
}

func (w *writer) open(name string, attrs pairs, extra []topo.Attr) {
	w.start(name, attrs, extra)
	w.print(">\n")
	w.depth++
}

func (w *writer) end(name string) {
	w.depth--
	w.print(strings.Repeat("  ", w.depth) + "</" + name + ">\n")
}

// leaf is an element with nothing below.
func (w *writer) leaf(name string, attrs pairs, extra []topo.Attr) {
	w.start(name, attrs, extra)
	w.print("/>\n")
}

func (w *writer) print(text string) { _, _ = w.out.WriteString(text) }

func (w *writer) cpu(c *topo.CPU) {
	p := pairs{}.number("numaid", c.NUMA).given("affinity", c.Affinity).given("arch", c.Arch).given("vendor", c.Vendor)
	if c.Family != 0 || c.Model != 0 {
		p = p.number("familyid", c.Family).number("modelid", c.Model)
	}
	w.open("cpu", p, c.Extra)
	w.devices(c.Devices)
	w.end("cpu")
}

func (w *writer) devices(devices []*topo.Device) {
	for _, d := range devices {
		if d.BusID == "" {
			w.nic(d.NIC)
			continue
		}
		p := pairs{}.text("busid", d.BusID).text("class", string(d.Class))
		if d.IDs.Given {
			p = p.hex("vendor", d.IDs.Vendor).hex("device", d.IDs.Device).hex("subsystem_vendor", d.IDs.SubVendor).
				hex("subsystem_device", d.IDs.SubProduct)
		}
		p = p.text("link_speed", d.Speed).number("link_width", d.Width)
		if len(d.GPUs) == 0 && d.NIC == nil && len(d.Below) == 0 {
			w.leaf("pci", p, d.Extra)
			continue
		}
		w.open("pci", p, d.Extra)
		for _, g := range d.GPUs {
			w.gpu(g)
		}
		w.nic(d.NIC)
		w.devices(d.Below)
		w.end("pci")
	}
}

func (w *writer) gpu(g *topo.GPU) {
	p := pairs{}.number("dev", g.Number).number("sm", g.SM)
	if g.Rank >= 0 {
		p = p.number("rank", g.Rank)
	}
	p = p.flag("gdr", g.GDR)
	if len(g.NVLinks)+len(g.C2C) == 0 {
		w.leaf("gpu", p, g.Extra)
		return
	}
	w.open("gpu", p, g.Extra)
	for _, l := range g.NVLinks {
		w.leaf("nvlink", pairs{}.text("target", l.Target).number("count", l.Count).text("tclass", string(l.Class)), nil)
	}
	for _, l := range g.C2C {
		w.leaf("c2c", pairs{}.number("bw", l.MBps).number("count", l.Count), nil)
	}
	w.end("gpu")
}

func (w *writer) nic(n *topo.NIC) {
	if n == nil {
		return
	}
	w.open("nic", nil, nil)
	for _, p := range n.Ports {
		a := pairs{}.given("name", p.Name)
		if p.Number >= 0 {
			a = a.number("dev", p.Number)
		}
		a = a.text("latency", fmt.Sprintf("%g", p.Latency)).number("speed", p.Mbps).number("port", p.Port).given("guid", p.GUID).
			number("maxconn", p.MaxConn).flag("gdr", p.GDR)
		if p.Coll {
			a = a.flag("coll", true)
		}
		if p.Off {
			a = a.flag("net", false)
		}
		w.leaf("net", a, p.Extra)
	}
	w.end("nic")
}
