package topo

import (
	"fmt"
	"slices"
	"strconv"
)

// builder makes a graph in NCCL's order: the trees of all CPUs, then NVLinks and C2C, then Broadcom's switches are joined, then the
// NUMA nodes. The order of links at a node decides between equal paths, so it is kept exactly.
type builder struct {
	Graph
	devices map[uint64]int // of GPUs, by bus number
	nics    map[string]int // by bus id; all cards without one are one
	nvs     int            // -1: none yet
}

// Build makes the graph of a machine that Clean has looked at.
func Build(m *Machine) *Graph {
	b := &builder{devices: map[uint64]int{}, nics: map[string]int{}, nvs: -1}
	for _, c := range m.CPUs {
		node := b.add(Node{Kind: CPUNode, Name: "cpu" + strconv.Itoa(c.NUMA), CPU: c})
		b.CPUs = append(b.CPUs, node)
		for _, d := range c.Devices {
			b.device(d, node)
		}
	}
	m.GPUs(b.nvlinks)
	m.GPUs(b.chipLinks)
	b.joinSwitches()
	b.joinCPUs()
	for _, c := range b.CPUs {
		b.uplinksLast(c, -1)
	}
	return b.compact()
}

func (b *builder) add(n Node) int {
	b.Nodes = append(b.Nodes, n)
	return len(b.Nodes) - 1
}

// connect adds one direction. Parallel links of a type become one; a link that grew moves before narrower ones.
func (b *builder) connect(from, to int, t LinkType, bw float64) {
	out := b.Nodes[from].Out
	at := slices.IndexFunc(out, func(l int) bool { return b.Links[l].To == to && b.Links[l].Type == t })
	if at < 0 {
		b.Links = append(b.Links, Link{From: from, To: to, Type: t, Latency: latencies[t], Reverse: -1})
		out = append(out, len(b.Links)-1)
		at = len(out) - 1
	}
	b.Links[out[at]].Bandwidth += bw
	for ; at > 0 && b.Links[out[at-1]].Bandwidth < b.Links[out[at]].Bandwidth; at-- {
		out[at-1], out[at] = out[at], out[at-1]
	}
	b.Nodes[from].Out = out
}

func (b *builder) both(x, y int, t LinkType, bw float64) {
	b.connect(x, y, t, bw)
	b.connect(y, x, t, bw)
}

// device adds a device and what is below it under its parent. A device that is neither GPU, NIC nor switch leads nowhere.
func (b *builder) device(d *Device, parent int) {
	for _, g := range d.GPUs {
		if g.Rank < 0 {
			return // nobody uses it
		}
		b.gpu(d, g, parent)
	}
	if d.NIC != nil {
		b.nic(d, parent)
		return
	}
	if d.Class.Role() != RoleSwitch || d.BusID == "" {
		return
	}
	node := b.add(Node{Kind: SwitchNode, Name: "pci" + d.BusID, Device: d})
	for _, sub := range d.Below {
		b.device(sub, node)
	}
	b.both(node, parent, PCI, d.Bandwidth())
}

func (b *builder) gpu(d *Device, g *GPU, parent int) {
	bus, _ := BusNumber(d.BusID) // 0 for what Clean would have taken out
	dev, ok := b.devices[bus]
	if !ok {
		dev = b.add(Node{Kind: DeviceNode, Name: gpuName(g), Device: d, GPU: g})
		b.devices[bus] = dev
		b.both(dev, parent, PCI, d.Bandwidth())
	}
	gpu := b.add(Node{Kind: GPUNode, Name: gpuName(g), Device: d, GPU: g})
	b.GPUs = append(b.GPUs, gpu)
	b.both(dev, gpu, LOC, LocalBW)
}

func gpuName(g *GPU) string { return "gpu" + strconv.Itoa(g.Rank) }

// nic adds the ports of a card; a card that stands in several places of the tree is where it stood first.
func (b *builder) nic(d *Device, parent int) {
	bw, name := d.Bandwidth(), d.BusID
	if name == "" {
		bw, name = LocalBW, "@"
	}
	node, known := b.nics[name]
	if !known {
		node = b.add(Node{Kind: NICNode, Name: "nic" + name, Device: d})
		b.nics[name] = node
	}
	for _, p := range d.NIC.Ports {
		if p.Number >= 0 && !p.Off {
			port := b.add(Node{Kind: PortNode, Name: fmt.Sprintf("net%d", p.Number), Device: d, Port: p})
			b.Ports = append(b.Ports, port)
			b.both(node, port, NET, p.Bandwidth())
		}
	}
	if !known {
		b.both(node, parent, PCI, bw)
	}
}

// Bandwidth is what the port carries in one direction, GB/s.
func (p *Port) Bandwidth() float64 {
	if p.Mbps <= 0 {
		return portDefault / 8000.0
	}
	return float64(p.Mbps) / 8000
}

func (b *builder) nvlinks(d *Device, g *GPU) {
	if dev, ok := b.deviceAt(d.BusID); ok {
		for _, l := range g.NVLinks {
			b.nvlink(dev, l)
		}
	}
}

func (b *builder) chipLinks(d *Device, g *GPU) {
	dev, ok := b.deviceAt(d.BusID)
	for _, c := range g.C2C {
		if cpu := b.cpuAbove(dev); ok && cpu >= 0 {
			b.both(dev, cpu, C2C, float64(c.Count)*float64(c.MBps)/1000)
		}
	}
}

func (b *builder) deviceAt(busID string) (node int, ok bool) {
	bus, err := BusNumber(busID)
	node, ok = b.devices[bus]
	return node, ok && err == nil
}

func (b *builder) nvlink(dev int, l *NVLink) {
	bw := float64(l.Count) * NVLinkBandwidth(b.Nodes[dev].GPU.SM)
	switch l.Class.Role() {
	case RoleGPU:
		if peer, ok := b.deviceAt(l.Target); ok {
			b.connect(dev, peer, NVL, bw) // the peer has its own entry
		}
	case RoleCPU:
		if cpu := b.cpuAbove(dev); cpu >= 0 {
			b.both(dev, cpu, NVL, bw)
		}
	default:
		if b.nvs < 0 {
			b.nvs = b.add(Node{Kind: NVSwitchNode, Name: "nvs"})
		}
		b.both(dev, b.nvs, NVL, bw)
	}
}
