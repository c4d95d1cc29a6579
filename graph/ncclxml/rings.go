package ncclxml

import (
	"math"
	"slices"

	"hccl.dev/hccl/graph/path"
)

// WeightedRing is a ring of a search of our own: nodes of the graph, GPUs in order, between ports or closing on the host.
type WeightedRing struct {
	Weight float64
	In     int // node of the port, -1: none
	GPUs   []int
	Out    int
	Open   bool // without ports it leads to another host, and does not close
}

// RingSearch puts weighted rings into NCCL's form, which knows only channels of one bandwidth: a ring of a larger weight is there
// more often. most is how many channels there may be; kept is the bandwidth that they have together.
func RingSearch(t *path.Table, rings []WeightedRing, most int) (s Search, kept float64) {
	weights := make([]float64, len(rings))
	for k, r := range rings {
		weights[k] = r.Weight
	}
	each, counts := Equal(weights, most)
	each = Whole(each)
	s = Search{ID: RingID, Pattern: Ring, Intra: each, Inter: each, TypeIntra: path.LOC, TypeInter: path.LOC, Same: true}
	for k, r := range rings {
		for range counts[k] {
			s.Add(t, r)
			kept += each
		}
	}
	return s, kept
}

// Whole is a bandwidth as files have it, in whole MB/s: the rest is noise of the search, and so is a twentieth that one lacks.
func Whole(gbps float64) float64 {
	if gbps > 0.1 {
		gbps = math.Floor(gbps*1000+0.05) / 1000
	}
	return gbps
}

// Add adds a ring as a channel, and notes the worst types of its paths.
func (s *Search) Add(t *path.Table, r WeightedRing) {
	c := s.channelOf(t, r)
	s.Same = s.Same && (len(s.Channels) == 0 || slices.Equal(c.GPUs, s.Channels[0].GPUs))
	s.Channels = append(s.Channels, c)
}

// channelOf numbers a ring's stops as the file does.
func (s *Search) channelOf(t *path.Table, r WeightedRing) Channel {
	g := t.Graph
	c := Channel{In: -1, Out: -1}
	for k, n := range r.GPUs {
		c.GPUs = append(c.GPUs, g.Nodes[n].GPU.Number)
		if k > 0 {
			s.TypeIntra = max(s.TypeIntra, t.Between(r.GPUs[k-1], n).Type)
		}
	}
	first, last := r.GPUs[0], r.GPUs[len(r.GPUs)-1]
	if r.In >= 0 && r.Out >= 0 {
		c.In, c.Out = g.Nodes[r.In].Port.Number, g.Nodes[r.Out].Port.Number
		s.TypeInter = max(s.TypeInter, t.Between(r.In, first).Type, t.Between(last, r.Out).Type)
		if c.In != c.Out {
			s.CrossNIC = 1
		}
	} else if first != last && !r.Open {
		s.TypeIntra = max(s.TypeIntra, t.Between(last, first).Type)
	}
	return c
}

// Equal finds the one bandwidth with which at most so many channels keep the most of the weights, and how many each weight gets.
// It is a whole part of one of the weights: with any other, each could be wider.
func Equal(weights []float64, most int) (each float64, counts []int) {
	best := 0.0
	for _, w := range weights {
		for parts := 1; parts <= most; parts++ {
			size := w / float64(parts)
			if found, n := cut(weights, size, most); n*size > best*(1+1e-9) {
				best, each, counts = n*size, size, found
			}
		}
	}
	if counts == nil {
		counts = make([]int, len(weights))
	}
	return each, counts
}

// cut is how many channels of a size each weight holds, the largest weights first when there are too many.
func cut(weights []float64, size float64, most int) (counts []int, n float64) {
	const slack = 1e-9 // of rounding
	counts = make([]int, len(weights))
	if !(size > 0) {
		return counts, 0
	}
	order := make([]int, len(weights))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case weights[a] > weights[b]:
			return -1
		case weights[a] < weights[b]:
			return 1
		}
		return 0
	})
	for _, k := range order {
		counts[k] = int(min(weights[k]/size+slack, float64(most)))
		most -= counts[k]
		n += float64(counts[k])
	}
	return counts, n
}
