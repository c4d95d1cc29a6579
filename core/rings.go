package core

import (
	"slices"
	"strings"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/path"
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
// to, or else by their numbers in the host. Bandwidths and ports are there where rings were packed into links.
func (c *Comm) ringSearch() ncclxml.Search {
	found := &c.agreed.found
	s := ncclxml.Search{ID: ncclxml.RingID, Pattern: ncclxml.Ring, TypeIntra: path.LOC, TypeInter: path.LOC, Same: true, Intra: found.Width,
		Inter: found.Width}
	if c.n > 1 {
		s.TypeIntra = path.SYS
	}
	devs := c.devs()
	for k, order := range c.orders() {
		ch := ncclxml.Channel{In: -1, Out: -1}
		for _, r := range order {
			if d, here := devs[r]; here {
				ch.GPUs = append(ch.GPUs, d)
			}
		}
		if found.Ways != nil {
			way := found.Ways[k][c.agreed.places[c.rank].Host]
			if ch.In, ch.Out = way.In, way.Out; ch.In >= 0 {
				s.TypeInter = path.SYS
			}
			if ch.In != ch.Out {
				s.CrossNIC = 1
			}
		}
		s.Same = s.Same && (len(s.Channels) == 0 || slices.Equal(ch.GPUs, s.Channels[0].GPUs))
		s.Channels = append(s.Channels, ch)
	}
	return s
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
