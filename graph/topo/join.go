package topo

import (
	"slices"
	"time"
)

var latencies = [...]time.Duration{LOC: 0, NVL: nvlinkLatency, C2C: nvlinkLatency, PCI: pciLatency, SYS: pciLatency, NET: netLatency}

// cpuAbove is the nearest NUMA node by PCI links, or -1.
func (b *builder) cpuAbove(node int) int {
	seen := []int{node}
	for k := 0; k < len(seen); k++ {
		if b.Nodes[seen[k]].Kind == CPUNode {
			return seen[k]
		}
		for _, l := range b.Nodes[seen[k]].Out {
			if b.Links[l].Type == PCI && !slices.Contains(seen, b.Links[l].To) {
				seen = append(seen, b.Links[l].To)
			}
		}
	}
	return -1
}

// broadcom is the generation of a two-level Broadcom switch (4 or 5), or 0. Generation 5 tells its levels apart: 0 is the upper.
func broadcom(d *Device, level int) int {
	ids := d.IDs
	switch {
	case ids.Vendor != 0x1000:
		return 0
	case ids.Device == 0xc010 && ids.SubVendor == 0x1000 && ids.SubProduct&^0xfff == 0xa000:
		return 4
	case ids.Device == 0xc030 && ids.SubVendor == 0x1000 && ids.SubProduct&^0xfff == level<<12:
		return 5
	}
	return 0
}

// joinSwitches makes one of a Broadcom switch and those of the level below, which share one chip's full width: what hangs on the
// lower moves to the upper, in the lower's place in the order of links.
func (b *builder) joinSwitches() {
	joined := map[int]bool{}
	for upper := range b.Nodes {
		n := &b.Nodes[upper]
		if n.Kind != SwitchNode || joined[upper] || broadcom(n.Device, 0) == 0 {
			continue
		}
		gen := broadcom(n.Device, 0)
		var keep, lower []int
		for _, l := range n.Out {
			to := b.Links[l].To
			if b.Nodes[to].Kind == SwitchNode && !joined[to] && broadcom(b.Nodes[to].Device, 1) == gen {
				lower = append(lower, to)
			} else {
				keep = append(keep, l)
			}
		}
		n.Out, joined[upper] = keep, true
		for _, sub := range lower {
			b.lift(sub, upper)
			joined[sub] = true
		}
	}
}

// lift moves the links of a lower switch to the upper one; the lower is left without any, and compact drops it.
func (b *builder) lift(lower, upper int) {
	for _, l := range b.Nodes[lower].Out {
		to := b.Links[l].To
		if to == upper {
			continue
		}
		b.Links[l].From = upper
		b.Nodes[upper].Out = append(b.Nodes[upper].Out, l)
		for _, back := range b.Nodes[to].Out {
			if b.Links[back].To == lower {
				b.Links[back].To = upper
				break
			}
		}
	}
	b.Nodes[lower].Out = nil
}

func (b *builder) joinCPUs() {
	for _, x := range b.CPUs {
		for _, y := range b.CPUs {
			if x != y {
				b.connect(x, y, SYS, b.Nodes[x].CPU.busBW())
			}
		}
	}
}

// uplinksLast puts the way to the CPU behind all others, at every node below.
func (b *builder) uplinksLast(node, up int) {
	out := b.Nodes[node].Out
	if up >= 0 {
		at := slices.IndexFunc(out, func(l int) bool { return b.Links[l].To == up })
		link := out[at]
		copy(out[at:], out[at+1:])
		out[len(out)-1] = link
	}
	for _, l := range slices.Clone(out) {
		if b.Links[l].Type == PCI && b.Links[l].To != up {
			b.uplinksLast(b.Links[l].To, node)
		}
	}
}

// compact drops joined switches and their links, numbers the rest anew and pairs the directions.
func (b *builder) compact() *Graph {
	g := &Graph{}
	place, moved := make([]int, len(b.Nodes)), make([]int, len(b.Links))
	for n := range b.Nodes {
		if place[n] = -1; len(b.Nodes[n].Out) > 0 || b.Nodes[n].Kind != SwitchNode {
			place[n] = len(g.Nodes)
			g.Nodes = append(g.Nodes, b.Nodes[n])
		}
	}
	for n := range g.Nodes {
		for _, l := range g.Nodes[n].Out {
			link := b.Links[l]
			link.From, link.To = n, place[link.To]
			moved[l] = len(g.Links)
			g.Links = append(g.Links, link)
		}
	}
	for n := range g.Nodes {
		for k, l := range g.Nodes[n].Out {
			g.Nodes[n].Out[k] = moved[l]
		}
	}
	for _, list := range []struct{ to, from *[]int }{{&g.GPUs, &b.GPUs}, {&g.Ports, &b.Ports}, {&g.CPUs, &b.CPUs}} {
		for _, n := range *list.from {
			*list.to = append(*list.to, place[n])
		}
	}
	g.pair()
	return g
}

func (g *Graph) pair() {
	for l := range g.Links {
		link := &g.Links[l]
		for _, back := range g.Nodes[link.To].Out {
			if g.Links[back].To == link.From && g.Links[back].Type == link.Type {
				link.Reverse = back
				break
			}
		}
	}
}
