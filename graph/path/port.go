package path

import (
	"math/bits"
	"slices"

	"hccl.dev/hccl/graph/topo"
)

// mostChannels is how many channels NCCL can have: over which of them each local GPU's turn at a port comes.
const mostChannels = 64

// chipToPorts: a GPU reaches the ports of its module by C2C and the CPU's own PCI, which is as good as it gets there.
func (t *Table) chipToPorts() {
	for _, gpu := range t.Graph.GPUs {
		cpu := t.LocalCPU(gpu)
		for _, port := range t.near(gpu, t.Graph.Ports) {
			if cpu < 0 || joined(t.Between(gpu, cpu).Type, t.Between(port, cpu).Type) != P2C {
				continue
			}
			for _, p := range []pair{{gpu, port}, {port, gpu}} {
				if way := t.Between(p.from, p.to); way.Type > P2C {
					way.Type = P2C
					t.change(p.from, p.to, byChip, way)
				}
			}
		}
	}
}

// turns are the ports near a GPU, and how they go round over the channels: GPUs that share near ports take different ones.
type turns struct {
	gpu, first, perGPU int
	ports              []int
}

func (t *Table) turnsOf(gpu int) turns {
	near := t.near(gpu, t.Graph.Ports)
	if len(near) == 0 {
		return turns{gpu: gpu}
	}
	count, sharing := len(near), max(len(t.near(near[0], t.Graph.GPUs)), 1)
	first := t.number(gpu) % sharing
	if count&(count-1) == 0 {
		first = mirrored(first, bits.Len(uint(count))-1)
	}
	return turns{gpu, first, (count + sharing - 1) / sharing, near}
}

// port is the one of a channel, -1 if there is none.
func (u turns) port(channel int) int {
	if len(u.ports) == 0 {
		return -1
	}
	return u.ports[(u.first+channel%u.perGPU)%len(u.ports)]
}

// number is CUDA's number of the GPU's device.
func (t *Table) number(gpu int) int { return t.Graph.Nodes[t.Graph.DeviceOf(gpu)].GPU.Number }

// mirrored reverses the lowest bits, so that neighbours are spread far apart.
func mirrored(n, width int) (m int) {
	for k := range width {
		m |= n >> k & 1 << (width - 1 - k)
	}
	return m
}

// gpuOf is the GPU beside a port, or -1: the nearest of which the port is the own on the earliest channel.
func (t *Table) gpuOf(port int) int {
	var near []turns
	for _, gpu := range t.near(port, t.Graph.GPUs) {
		near = append(near, t.turnsOf(gpu))
	}
	for channel := range mostChannels {
		for _, u := range near {
			if u.port(channel) == port {
				return u.gpu
			}
		}
	}
	return -1
}

// gdr reports whether the port can reach the GPU's memory by itself. Before compute capability 8.0 reading it that way is slow, and
// done only where the GPU has NVLink.
func (t *Table) gdr(gpu, port int, read bool) bool {
	g := t.Graph
	if !g.Nodes[port].Port.GDR || !g.Nodes[gpu].GPU.GDR {
		return false
	}
	if read && g.SM(gpu) < 80 && len(g.GPUs) > 1 && !t.hasNVLinkPeer(gpu) {
		return false
	}
	p := t.Between(gpu, port)
	if p.Type == PXN {
		p = t.Between(t.relayOf(p), port)
	}
	return p.Type <= P2C
}

func (t *Table) hasNVLinkPeer(gpu int) bool {
	return slices.ContainsFunc(t.Graph.GPUs, func(o int) bool { return o != gpu && t.Between(gpu, o).Type == NVL })
}

// relayOf is the GPU of the first other device that a relayed path enters.
func (t *Table) relayOf(p Path) int {
	g := t.Graph
	for _, l := range p.Links[1:] {
		to := g.Links[l].To
		if g.Nodes[to].Kind == topo.NVSwitchNode {
			continue
		}
		for _, gpu := range g.GPUs {
			if g.DeviceOf(gpu) == to {
				return gpu
			}
		}
		break
	}
	return p.Via
}

// portRules sends a GPU's data for a port over the GPU beside that port where that is faster or spares the CPU, and over the CPU where
// the port cannot reach the GPU's memory.
func (t *Table) portRules() {
	for _, port := range t.Graph.Ports {
		beside := t.gpuOf(port)
		for _, gpu := range t.Graph.GPUs {
			if beside >= 0 && beside != gpu && t.relayHelps(gpu, beside, port) {
				t.change(gpu, port, relayedPXN, t.relay(gpu, beside, port))
			}
			if t.Between(gpu, port).Type < PHB && !t.gdr(gpu, port, false) {
				if cpu := t.LocalCPU(gpu); cpu >= 0 {
					t.change(port, gpu, noGDR, t.relay(port, cpu, gpu))
					t.change(gpu, port, noGDR, t.relay(gpu, cpu, port))
				}
			}
		}
	}
}

func (t *Table) relayHelps(gpu, beside, port int) bool {
	near, own := t.Between(beside, port), t.Between(gpu, port)
	return near.Type <= P2C && t.gdr(beside, port, true) && t.Between(beside, gpu).Type <= NVL &&
		(near.Bandwidth > own.Bandwidth || own.Type > PXN)
}
