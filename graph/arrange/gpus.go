package arrange

import (
	"errors"
	"fmt"
	"slices"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/pack"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

// machine is the host's of a rank, nil where it is not known.
func (a *arrangement) machine(r int) *topo.Machine {
	if h := a.ranks[r].Host; h >= 0 && h < len(a.machines) {
		return a.machines[h]
	}
	return nil
}

// gpu is what a rank computes on; nil for the host, or where its machine is not known.
func (a *arrangement) gpu(r int) (found *topo.GPU) {
	m := a.machine(r)
	if m == nil || a.ranks[r].GPU == "" {
		return nil
	}
	want, err := topo.BusNumber(a.ranks[r].GPU)
	m.GPUs(func(d *topo.Device, g *topo.GPU) {
		if bus, bad := topo.BusNumber(d.BusID); bad == nil && err == nil && bus == want && found == nil {
			found = g
		}
	})
	return found
}

func deviceName(g *topo.GPU) string { return fmt.Sprintf("gpu%d", g.Number) }

// packed are the rings that the search finds for the hosts' links, if every rank has a GPU of its own. Hosts that are alike are
// searched once.
func (a *arrangement) packed() ([][]int, error) {
	sites, networks := make([]pack.Site, len(a.hosts)), make([]*pack.Network, len(a.hosts))
	for k := range a.hosts {
		n, ranks, err := a.network(a.hosts[k].ranks)
		if err != nil {
			return nil, err
		}
		networks[k], sites[k].Ranks = n, ranks
	}
	kind, first := pack.Kinds(networks)
	packings := make([]pack.RingPacking, len(first))
	for k, n := range first {
		packings[k] = pack.Rings(n, len(sites), pack.Bound(n, len(sites)), pack.Thorough)
		if err := packings[k].Verify(n, len(sites)); err != nil {
			return nil, err
		}
	}
	for k := range sites {
		sites[k].Kind = kind[k]
	}
	channels, err := pack.Join(packings, sites)
	if err != nil {
		return nil, err
	}
	return equal(channels)
}

// network is a host whose only GPUs are those of the ranks, and the ranks in the order of its GPUs.
func (a *arrangement) network(ranks []int) (*pack.Network, []int, error) {
	m := a.machine(ranks[0])
	if m == nil {
		return nil, nil, errors.New("the machine is not known")
	}
	m.GPUs(func(_ *topo.Device, g *topo.GPU) { g.Rank = -1 })
	byNumber := slices.Sorted(slices.Values(ranks))
	for k, r := range byNumber {
		g := a.gpu(r)
		if g == nil || g.Rank >= 0 {
			return nil, nil, fmt.Errorf("rank %d has no GPU of its own", r)
		}
		g.Rank = k
	}
	h := pack.NewHost(path.New(topo.Build(m)))
	if err := h.Check(); err != nil {
		return nil, nil, err
	}
	order := make([]int, len(h.Ranks))
	for k, local := range h.Ranks {
		order[k] = byNumber[local]
	}
	return &h.Network, order, nil
}

// equal makes channels of one bandwidth of weighted ones: a wider one is there more often.
func equal(channels []pack.Channel) (orders [][]int, err error) {
	weights := make([]float64, len(channels))
	for k, c := range channels {
		weights[k] = c.Weight
	}
	_, counts := ncclxml.Equal(weights, most)
	for k, c := range channels {
		for range counts[k] {
			orders = append(orders, c.Order)
		}
	}
	if orders == nil {
		err = errors.New("no ring can pass")
	}
	return orders, err
}
