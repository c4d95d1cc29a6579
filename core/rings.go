package core

import (
	"slices"
	"strings"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/replace"
)

// tellRings says what of this rank's NCCL_GRAPH_FILE could not be used, and writes NCCL_GRAPH_DUMP_FILE where it is this rank's to write.
// No fault of a file stops a communicator.
func (c *Comm) tellRings() {
	for _, f := range c.agreed.found.Faults {
		if f.Rank == c.rank {
			tellGraphFile(c.settings.GraphFile, f.Text)
		}
	}
	name := c.settings.GraphDumpFile
	if name == "" || c.rank != c.settings.GraphDumpRank {
		return
	}
	var text strings.Builder
	err := ncclxml.WriteSearches(&text, []ncclxml.Search{c.ringSearch()})
	if err == nil {
		err = replace.File(name, []byte(text.String()))
	}
	if err != nil {
		log.WarnOnce("NCCL_GRAPH_DUMP_FILE "+name, "NCCL_GRAPH_DUMP_FILE cannot be written: %s: %v; name a file in a folder that this process "+
			"may write to", name, err)
		return
	}
	c.log.Info(log.Graph, "communicator %s: rank %d has written its host's rings to %s", c.label(), c.rank, name)
}

// ringSearch is the rings as they pass this rank's host, in the form of a graph file. Ranks stand in it by the GPUs that they are bound
// to, or else by their numbers in the host, and types are those of the ways between the GPUs, or else by the ranks' NUMA nodes.
// Bandwidths and ports are there where rings were packed into links.
func (c *Comm) ringSearch() ncclxml.Search {
	found := &c.agreed.found
	gbps := ncclxml.Whole(found.Width)
	s := ncclxml.Search{ID: ncclxml.RingID, Pattern: ncclxml.Ring, TypeIntra: path.LOC, TypeInter: path.LOC, Same: true, Intra: gbps,
		Inter: gbps}
	devs := c.devs()
	t := c.hostTable(devs)
	for k, order := range c.orders() {
		ch := ncclxml.Channel{In: -1, Out: -1}
		var ranks []int
		for _, r := range order {
			if d, here := devs[r]; here {
				ch.GPUs, ranks = append(ch.GPUs, d), append(ranks, r)
			}
		}
		if found.Ways != nil {
			way := found.Ways[k][c.agreed.places[c.rank].Host]
			ch.In, ch.Out = way.In, way.Out
		}
		if t != nil {
			if ring, ok := nodes(t.Graph, ch); ok {
				ring.Open = len(ranks) < c.n
				s.Add(t, ring)
				continue
			}
		}
		s.TypeIntra = max(s.TypeIntra, c.typeOf(ranks))
		if ch.In != ch.Out {
			s.CrossNIC = 1
		}
		s.Same = s.Same && (len(s.Channels) == 0 || slices.Equal(ch.GPUs, s.Channels[0].GPUs))
		s.Channels = append(s.Channels, ch)
	}
	return s
}

// hostTable has the paths between the GPUs that ranks of this host are bound to, and to its ports; nil where it is not described.
func (c *Comm) hostTable(devs map[int]int) *path.Table {
	if c.n == 1 || c.agreed.devices[c.rank] < 0 {
		return nil
	}
	for _, r := range c.ofHost() {
		m := c.agreed.hosts[c.peers[r].Described]
		if m == nil {
			continue
		}
		m = m.Bare()
		used := map[int]bool{}
		for _, d := range devs {
			used[d] = true
		}
		m.GPUs(func(_ *topo.Device, g *topo.GPU) {
			if g.Rank = -1; used[g.Number] {
				g.Rank, used[g.Number] = g.Number, false
			}
		})
		return path.New(topo.Build(m))
	}
	return nil
}

// nodes are the stops of a channel; not ok if the graph lacks one.
func nodes(g *topo.Graph, ch ncclxml.Channel) (ring ncclxml.WeightedRing, ok bool) {
	ring = ncclxml.WeightedRing{In: -1, Out: -1}
	for _, dev := range ch.GPUs {
		at := slices.IndexFunc(g.GPUs, func(n int) bool { return g.Nodes[n].GPU.Number == dev })
		if at < 0 {
			return ring, false
		}
		ring.GPUs = append(ring.GPUs, g.GPUs[at])
	}
	for _, end := range []struct {
		number int
		node   *int
	}{{ch.In, &ring.In}, {ch.Out, &ring.Out}} {
		if end.number < 0 {
			continue
		}
		at := slices.IndexFunc(g.Ports, func(n int) bool { return g.Nodes[n].Port.Number == end.number })
		if at < 0 {
			return ring, false
		}
		*end.node = g.Ports[at]
	}
	return ring, len(ring.GPUs) > 0
}

// typeOf is how far ranks of a host are from each other by their NUMA nodes: PHB in one, else SYS.
func (c *Comm) typeOf(ranks []int) path.Type {
	switch {
	case len(ranks) < 2:
		return path.LOC
	case slices.ContainsFunc(ranks, func(r int) bool {
		numa := c.agreed.places[r].NUMA
		return numa == unknown || numa != c.agreed.places[ranks[0]].NUMA
	}):
		return path.SYS
	}
	return path.PHB
}

// orders are those of the rings.
func (c *Comm) orders() [][]int {
	if c.n == 1 {
		return [][]int{{0}}
	}
	return c.agreed.found.Orders
}

// devs are the ranks on this rank's host by their numbers in a graph file.
func (c *Comm) devs() map[int]int {
	devs := map[int]int{}
	for k, r := range c.ofHost() {
		if devs[r] = k; c.n > 1 && c.agreed.devices[r] >= 0 {
			devs[r] = c.agreed.devices[r]
		}
	}
	return devs
}

// ofHost are the ranks on this rank's host, by number.
func (c *Comm) ofHost() (ranks []int) {
	if c.n == 1 {
		return []int{0}
	}
	for r, p := range c.agreed.places {
		if p.Host == c.agreed.places[c.rank].Host {
			ranks = append(ranks, r)
		}
	}
	return ranks
}
