package arrange

import (
	"fmt"
	"slices"

	"hccl.dev/hccl/graph/pack"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

// kind is hosts that are alike: machine, and GPUs that ranks are bound to.
type kind struct {
	network *pack.Network // nil where nothing is known: the ranks stand by their places, and limit nothing
	ports   []int         // numbers of the network's ports
	ranks   []int         // for each GPU of the network which of the host's ranks, by number, is on it
}

// merge makes networks of the hosts, one for those that are alike.
func (a *Arrangement) merge() (kinds []kind, sites []pack.Site, err error) {
	if a.sites != nil {
		return a.kinds, a.sites, nil
	}
	known := map[string]int{}
	for k := range a.hosts {
		h := &a.hosts[k]
		name := a.likeness(h)
		at, ok := known[name]
		if !ok {
			at = len(kinds)
			known[name] = at
			made, err := a.kind(h)
			if err != nil {
				return nil, nil, err
			}
			kinds = append(kinds, made)
		}
		site := pack.Site{Kind: at}
		byNumber := h.ranks
		if h.searched {
			byNumber = slices.Sorted(slices.Values(h.ranks))
		}
		for _, local := range kinds[at].ranks {
			site.Ranks = append(site.Ranks, byNumber[local])
		}
		sites = append(sites, site)
	}
	a.kinds, a.sites = kinds, sites
	return kinds, sites, nil
}

// likeness is the same for hosts of one kind.
func (a *Arrangement) likeness(h *site) string {
	if !h.searched {
		return fmt.Sprint(len(h.ranks))
	}
	var on []int
	for _, r := range slices.Sorted(slices.Values(h.ranks)) {
		on = append(on, a.gpus[r].Number)
	}
	return fmt.Sprintf("%p %v", a.machine(h), on)
}

func (a *Arrangement) kind(h *site) (k kind, err error) {
	if !h.searched {
		for local := range h.ranks {
			k.ranks = append(k.ranks, local)
		}
		return k, nil
	}
	if err := pack.Searchable(len(h.ranks)); err != nil {
		return kind{}, fmt.Errorf("the links of rank %d's host: %w", h.ranks[0], err)
	}
	host := pack.NewHost(path.New(topo.Build(a.bound(h))))
	if err := host.Check(); err != nil {
		return kind{}, fmt.Errorf("the links of rank %d's host: %w", h.ranks[0], err)
	}
	return kind{&host.Network, host.Ports, host.Ranks}, nil
}

// bound is a host's machine with those GPUs alone that ranks are bound to. Where hosts have to be left and no port is known there is one
// at the first NUMA node, as NCCL takes it: a socket of unknown speed.
func (a *Arrangement) bound(h *site) *topo.Machine {
	local := map[*topo.GPU]int{}
	for k, r := range slices.Sorted(slices.Values(h.ranks)) {
		local[a.gpus[r]] = k
	}
	var ranks []int
	m := a.machine(h)
	m.GPUs(func(_ *topo.Device, g *topo.GPU) {
		k, ok := local[g]
		if !ok {
			k = -1
		}
		ranks = append(ranks, k)
	})
	m = m.Bare()
	m.GPUs(func(_ *topo.Device, g *topo.GPU) { g.Rank, ranks = ranks[0], ranks[1:] })
	ports := 0
	m.Walk(func(_ *topo.CPU, d *topo.Device) {
		if d.NIC != nil {
			ports += len(d.NIC.Ports)
		}
	})
	if ports == 0 && len(a.hosts) > 1 {
		m.CPUs[0].Devices = append(m.CPUs[0].Devices, &topo.Device{NIC: &topo.NIC{Ports: []*topo.Port{{}}}})
	}
	return m
}
