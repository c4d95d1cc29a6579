package path

import "hccl.dev/hccl/graph/topo"

// leastShare is the part of the first way's bandwidth that a further one must have to be worth a mention.
const leastShare = 0.01

// Ways are paths from a GPU or port to another that can be used at the same time: each has what the ones before left of its links,
// so their bandwidths add up. The first is the best, as Between finds it before any rule; NCCL uses one and no other. The
// sum can stay below the maximum flow, since a way once taken is not taken back.
func (t *Table) Ways(from, to int) (ways []Path, sum float64) {
	left := make([]float64, len(t.Graph.Links))
	for l := range left {
		left[l] = t.Graph.Links[l].Bandwidth
	}
	for from != to {
		p := search(t.Graph, to, left)[from]
		if !p.Exists() || len(p.Links) == 0 || len(ways) > 0 && p.Bandwidth < leastShare*ways[0].Bandwidth {
			break
		}
		for _, l := range p.Links {
			left[l] -= p.Bandwidth
		}
		ways, sum = append(ways, p), sum+p.Bandwidth
	}
	return ways, sum
}

// without is the path that the search finds where links of one type are missing.
func (t *Table) without(from, to int, typ topo.LinkType) Path {
	left := make([]float64, len(t.Graph.Links))
	for l := range left {
		if link := &t.Graph.Links[l]; link.Type != typ {
			left[l] = link.Bandwidth
		}
	}
	return search(t.Graph, to, left)[from]
}
