package arrange

import (
	"cmp"
	"fmt"
	"slices"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/plural"
)

// bind gives ranks GPUs of their hosts' machines: those that they name, if the ranks of the host name different ones that are there, and
// else the first rank the first GPU, by their numbers. (Where a program cannot choose a device all ranks name 0.) A host with more
// ranks than GPUs has ranks that nothing is known of, and counts as a host without a machine.
func (a *Arrangement) bind() {
	for k := range a.hosts {
		h := &a.hosts[k]
		m := a.machine(h)
		ranks := slices.Sorted(slices.Values(h.ranks))
		if m == nil {
			a.undescribed(ranks)
			continue
		}
		gpus := numbered(m)
		if len(gpus) < len(ranks) {
			if len(gpus) > 0 {
				a.not(fmt.Sprintf("rank %d's host has %s and %s", ranks[0], plural.Of(len(ranks), "rank"), plural.Of(len(gpus), "GPU")))
			}
			continue
		}
		for k, g := range a.named(ranks, gpus) {
			a.gpus[ranks[k]] = g
		}
		if h.searched = !m.Flat(); m.Flat() {
			a.not(fmt.Sprintf("rank %d's host shows a flat PCI tree, which does not tell what is near", ranks[0]))
		}
	}
}

// undescribed tells why nothing is known of a host of which a rank has a file.
func (a *Arrangement) undescribed(ranks []int) {
	for _, r := range ranks {
		if why := a.ranks[r].WhyNot; why != "" {
			a.not(fmt.Sprintf("the NCCL_TOPO_FILE of rank %d %s", r, why))
		}
	}
}

// not keeps the first reason why a host's links are not searched.
func (a *Arrangement) not(why string) { a.whyNot = cmp.Or(a.whyNot, why) }

// machine is the host's, nil where it is not known.
func (a *Arrangement) machine(h *site) *topo.Machine {
	if n := a.ranks[h.ranks[0]].Host; n < len(a.machines) {
		return a.machines[n]
	}
	return nil
}

// numbered are the GPUs by their numbers.
func numbered(m *topo.Machine) (gpus []*topo.GPU) {
	m.GPUs(func(_ *topo.Device, g *topo.GPU) { gpus = append(gpus, g) })
	slices.SortStableFunc(gpus, func(x, y *topo.GPU) int { return cmp.Compare(x.Number, y.Number) })
	return gpus
}

// named are the GPUs of a host's ranks.
func (a *Arrangement) named(ranks []int, gpus []*topo.GPU) (found []*topo.GPU) {
	for _, r := range ranks {
		at := slices.IndexFunc(gpus, func(g *topo.GPU) bool { return g.Number == a.ranks[r].Device })
		if at < 0 || slices.Contains(found, gpus[at]) {
			return gpus[:len(ranks)]
		}
		found = append(found, gpus[at])
	}
	return found
}

// Device is the number of the GPU that a rank is bound to, -1 if to none.
func (a *Arrangement) Device(r int) int {
	if g := a.gpus[r]; g != nil {
		return g.Number
	}
	return -1
}

// Searches reports whether there is something to solve: ranks that are bound to GPUs, and orders that differ.
func (a *Arrangement) Searches() bool {
	if a.scope == cost.Nothing || a.file || len(a.ranks) < 3 {
		return false
	}
	return slices.ContainsFunc(a.hosts, func(h site) bool { return h.searched && len(h.ranks) > 1 })
}
