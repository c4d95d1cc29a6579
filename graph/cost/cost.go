// Package cost is the matrix of costs between ranks, for whoever places ranks or orders them.
//
// A cost says how long a byte takes on the way from one rank to another. 1 is what it takes within a NUMA node, about 1/48 ns. It comes
// from the best that is known of a pair:
//
//	a weight    1 in one NUMA node, 3 across NUMA nodes, 15 through one network switch, 30 beyond: where nothing is known but places
//	a rate      48 GB/s over the bandwidth of the path: where the links are known (PCI, NVLink, NICs)
//	a measure   48 GB/s over what a probe of real transfers found
//
// Measures are taken once and kept by the hash of the topology (measures.go). The package computes; it times no transfer and opens no
// file (package store does).
package cost

import (
	"fmt"
	"slices"

	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
)

// Source is how a cost is known.
type Source uint8

// The sources, each better than the one before.
const (
	Weight Source = iota
	Rate
	Measure
)

var sourceNames = [...]string{"weight", "rate", "measure"}

func (s Source) String() string { return sourceNames[s] }

// MarshalText writes the name.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name.
func (s *Source) UnmarshalText(text []byte) error {
	for k, name := range sourceNames {
		if name == string(text) {
			*s = Source(k)
			return nil
		}
	}
	return fmt.Errorf("%q is no source of a cost; there are %v", text, sourceNames)
}

// Scope says how much of the topology counts.
type Scope uint8

// The scopes.
const (
	All       Scope = iota
	LocalOnly       // within hosts; hosts are equally far from each other
	Nothing         // no topology: all ranks are equally far from each other
)

// The weights, and the bandwidth in GB/s that a cost of 1 stands for: a PCIe 5.0 x16 link.
const (
	SameNUMA   = 1.0
	AcrossNUMA = 3.0
	OneSwitch  = 15.0
	Beyond     = 30.0
	Unit       = 48.0
)

// Rank is where a rank is.
type Rank struct {
	Host   int    `json:"host"`
	NUMA   int    `json:"numa"`             // -1: not known, or of several
	Cache  int    `json:"cache"`            // the last-level cache by its first processor; -1 likewise
	Switch string `json:"switch,omitempty"` // of the network, "": not known
	Device string `json:"device,omitempty"` // gpu0; "" for ranks on host memory
}

// Cell is one pair's cost.
type Cell struct {
	Cost      float64 // 0 from a rank to itself
	Bandwidth float64 // GB/s; 0: not known
	Latency   float64 // us, of a short message; 0: not measured
	Source    Source
	Type      string // of the path, where there is one
}

// Matrix has a cell for each ordered pair of ranks.
type Matrix struct {
	Ranks []Rank
	Cells [][]Cell // from, to
}

// OfPlaces makes the matrix of ranks of which only the places are known.
func OfPlaces(ranks []Rank, scope Scope) *Matrix {
	m := &Matrix{Ranks: ranks, Cells: make([][]Cell, len(ranks))}
	for a := range ranks {
		m.Cells[a] = make([]Cell, len(ranks))
		for b := range ranks {
			if a != b {
				m.Cells[a][b].Cost = weight(ranks[a], ranks[b], scope)
			}
		}
	}
	return m
}

func weight(a, b Rank, scope Scope) float64 {
	switch {
	case scope == Nothing || a.Host == b.Host && a.NUMA == b.NUMA:
		return SameNUMA
	case a.Host == b.Host:
		return AcrossNUMA
	case a.Switch == b.Switch || scope == LocalOnly:
		return OneSwitch
	}
	return Beyond
}

// OfHosts makes the matrix of the GPUs of equal hosts, each as in the table, joined by a network that does not limit.
func OfHosts(t *path.Table, hosts int, scope Scope) *Matrix {
	var ranks []Rank
	gpus := byRank(t.Graph)
	for h := range hosts {
		for _, n := range gpus {
			ranks = append(ranks, Rank{Host: h, NUMA: numaOf(t, n), Cache: -1, Device: t.Graph.Nodes[n].Name})
		}
	}
	m := OfPlaces(ranks, scope)
	if scope == Nothing {
		return m
	}
	for a := range ranks {
		for b := range ranks {
			same := ranks[a].Host == ranks[b].Host
			if p, ok := way(t, gpus[a%len(gpus)], gpus[b%len(gpus)], same); a != b && ok && (same || scope == All) {
				m.Cells[a][b] = Cell{Cost: Unit / p.Bandwidth, Bandwidth: p.Bandwidth, Source: Rate, Type: p.Type.String()}
			}
		}
	}
	return m
}

// way is what data take within a host or between two.
func way(t *path.Table, from, to int, sameHost bool) (p path.Path, ok bool) {
	if p = t.Between(from, to); sameHost && p.Exists() {
		return p, p.Bandwidth > 0
	}
	p, ok = t.ByNetwork(from, to)
	return p, ok && p.Bandwidth > 0
}

// byRank are the GPUs in the order of their ranks.
func byRank(g *topo.Graph) []int {
	return slices.SortedStableFunc(slices.Values(g.GPUs), func(a, b int) int { return g.Nodes[a].GPU.Rank - g.Nodes[b].GPU.Rank })
}

func numaOf(t *path.Table, gpu int) int {
	if cpu := t.LocalCPU(gpu); cpu >= 0 {
		return t.Graph.Nodes[cpu].CPU.NUMA
	}
	return -1
}

// SetMeasure takes what a probe found from one rank to another. What makes no sense is refused.
func (m *Matrix) SetMeasure(from, to int, v Measured) error {
	if from == to || from < 0 || to < 0 || from >= len(m.Cells) || to >= len(m.Cells) || !v.sound() {
		return fmt.Errorf("a measured rate of %g bytes a second after %g s, from rank %d to rank %d of %d, makes no sense: it is not used",
			v.Rate, v.Latency, from, to, len(m.Cells))
	}
	c := &m.Cells[from][to]
	c.Cost, c.Bandwidth, c.Latency, c.Source = Unit*1e9/v.Rate, v.Rate/1e9, v.Latency*1e6, Measure
	return nil
}
