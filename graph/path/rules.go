package path

import (
	"slices"

	"hccl.dev/hccl/graph/topo"
)

// A ruleID says why a pair does not go the way that the search found.
type ruleID uint8

const (
	noP2P      ruleID = iota // GPUs that far apart do not read each other's memory
	netFaster                // the network beats the path
	byChip                   // C2C and the CPU's PCI
	relayedPXN               // the GPU beside the port sends for it
	noGDR                    // the port cannot read the GPU's memory
)

// rule is one change of a pair's path.
type rule struct {
	id     ruleID
	before Path
}

// change replaces a path and remembers why.
func (t *Table) change(from, to int, id ruleID, p Path) {
	old := t.at(from, to)
	t.rules[pair{from, to}] = append(t.rules[pair{from, to}], rule{id, *old})
	*old = p
}

// relay is the path that goes over a third node.
func (t *Table) relay(from, via, to int) Path {
	first, second := t.Between(from, via), t.Between(via, to)
	p := Path{Type: joined(first.Type, second.Type), Bandwidth: min(first.Bandwidth, second.Bandwidth), Via: via,
		Links: slices.Concat(first.Links, second.Links)}
	if t.Graph.Nodes[via].Kind == topo.GPUNode {
		p.Type = PXN
	}
	return p
}

// joined is the type of two paths in a row.
func joined(a, b Type) Type {
	if a == PHB && b == C2C || a == C2C && b == PHB {
		return P2C
	}
	return max(a, b)
}

// near are those of the nodes that are best reached from one: most bandwidth, then best type.
func (t *Table) near(from int, nodes []int) (some []int) {
	best := nowhere
	for _, n := range nodes {
		p := t.Between(from, n)
		if p.Bandwidth <= 0 || p.Bandwidth < best.Bandwidth || p.Bandwidth == best.Bandwidth && p.Type > best.Type {
			continue
		}
		if p.Bandwidth != best.Bandwidth || p.Type != best.Type {
			some, best = some[:0], p
		}
		some = append(some, n)
	}
	return some
}

// LocalCPU is the NUMA node of a GPU, or -1.
func (t *Table) LocalCPU(gpu int) int {
	local := -1
	for _, c := range t.near(gpu, t.Graph.CPUs) {
		if local < 0 || len(t.Between(gpu, c).Links) < len(t.Between(gpu, local).Links) {
			local = c
		}
	}
	return local
}

// withoutP2P sends pairs of GPUs that are too far apart for peer-to-peer access over the NUMA node of the receiver. AMD's host bridges
// pass it on between two GPUs, and are trusted with no more.
func (t *Table) withoutP2P() {
	most, g := PXB, t.Graph
	if len(g.CPUs) > 0 && g.Nodes[g.CPUs[0]].CPU.AMD() && t.devices() <= 2 {
		most = SYS
	}
	for _, to := range g.GPUs {
		for _, from := range g.GPUs {
			if cpu := t.LocalCPU(to); t.Between(from, to).Type > most && cpu >= 0 {
				t.change(from, to, noP2P, t.relay(from, cpu, to))
			}
		}
	}
}

func (t *Table) devices() (n int) {
	for _, node := range t.Graph.Nodes {
		if node.Kind == topo.DeviceNode {
			n++
		}
	}
	return n
}

// cut marks the pairs of GPUs that NCCL leaves to the network, and makes the groups that this leaves.
func (t *Table) cut() {
	var pairs []pair
	gpus := t.Graph.GPUs
	for _, a := range gpus {
		for _, b := range gpus {
			if a != b && t.netIsFaster(a, b) {
				pairs = append(pairs, pair{a, b})
			}
		}
	}
	for _, p := range pairs {
		way := t.Between(p.from, p.to)
		way.Type = NET
		t.change(p.from, p.to, netFaster, way)
	}
	t.Groups = make([]int, len(gpus))
	for k, a := range gpus {
		t.Groups[k] = k
		for j, b := range gpus[:k] {
			if t.Between(a, b).Type < NET {
				t.Groups[k] = min(t.Groups[k], t.Groups[j])
			}
		}
	}
}

// netIsFaster: both have a port within their own switches that is wider than the path between them. A pair that NVLink joins
// through a third GPU is left alone.
func (t *Table) netIsFaster(a, b int) bool {
	p := t.Between(a, b)
	if len(p.Links) == 4 && t.Graph.Nodes[t.Graph.Links[p.Links[1]].To].Kind == topo.DeviceNode {
		return false
	}
	return min(t.widestPort(a), t.widestPort(b)) > p.Bandwidth
}

func (t *Table) widestPort(gpu int) (bw float64) {
	for _, n := range t.Graph.Ports {
		if p := t.Between(gpu, n); p.Type <= PXB {
			bw = max(bw, p.Bandwidth)
		}
	}
	return bw
}
