package cost

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"hccl.dev/hccl/graph/topo"
)

// Hash tells topologies apart for which measures hold: nodes, links and their modelled bandwidths, not the names of files.
func Hash(g *topo.Graph) string {
	h := fnv.New64a()
	for _, n := range g.Nodes {
		fmt.Fprintf(h, "%d %s\n", n.Kind, n.Name)
	}
	for _, l := range g.Links {
		fmt.Fprintf(h, "%d %d %d %x\n", l.From, l.To, l.Type, math.Float64bits(l.Bandwidth))
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// Place names where in its host a rank is. Ranks at one place are alike, so that measures hold for all of them: gpu0, or
// numa0/cache4 by the first processor of the cache; -1 where a rank is not bound to one.
func (r Rank) Place() string {
	if r.Device != "" {
		return r.Device
	}
	return fmt.Sprintf("numa%d/cache%d", r.NUMA, r.Cache)
}

// Measured is what a probe found on the way from one place to another.
type Measured struct {
	Rate    float64 `json:"bytes_per_second"` // of long messages
	Latency float64 `json:"seconds"`          // of a short one; 0: not measured
}

func (v Measured) sound() bool {
	return v.Rate > 0 && v.Rate <= 1e15 && v.Latency >= 0 && v.Latency <= 1e3
}

// Measures are what probes found within hosts of one topology.
type Measures struct {
	Topology string // its Hash
	between  map[[2]string]Measured
}

// NewMeasures is empty.
func NewMeasures(topology string) *Measures {
	return &Measures{Topology: topology, between: map[[2]string]Measured{}}
}

// most is more than any host has pairs of places: what has more is no file of measures.
const (
	most     = 1 << 16
	mostName = 64
)

// Set takes a measure. What is no rate is refused.
func (m *Measures) Set(from, to string, v Measured) error {
	switch {
	case !v.sound():
		return fmt.Errorf("a measured rate of %g bytes a second after %g s, from %.64s to %.64s, makes no sense: it is not used", v.Rate,
			v.Latency, from, to)
	case from == "" || to == "" || len(from) > mostName || len(to) > mostName || len(m.between) >= most:
		return fmt.Errorf("a measure from %.64q to %.64q, one of %d, belongs to no place: it is not used", from, to, len(m.between))
	}
	m.between[[2]string{from, to}] = v
	return nil
}

// Of is what was measured, if it was.
func (m *Measures) Of(from, to string) (Measured, bool) {
	if m == nil {
		return Measured{}, false
	}
	v, ok := m.between[[2]string{from, to}]
	return v, ok
}

// From are the places that were measured from a place, in order.
func (m *Measures) From(place string) (to []string) {
	if m == nil {
		return nil
	}
	for k := range m.between {
		if k[0] == place {
			to = append(to, k[1])
		}
	}
	slices.Sort(to)
	return to
}

// kept is the form of a file of measures.
type kept struct {
	Version  int      `json:"version"`
	Topology string   `json:"topology"`
	Measures []aProbe `json:"measures"`
}

type aProbe struct {
	From string `json:"from"`
	To   string `json:"to"`
	Measured
}

const keptVersion = 2

// Encode writes measures, to be kept in a file.
func (m *Measures) Encode() ([]byte, error) {
	k := kept{Version: keptVersion, Topology: m.Topology, Measures: []aProbe{}}
	for _, pair := range slices.SortedFunc(maps.Keys(m.between), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		k.Measures = append(k.Measures, aProbe{pair[0], pair[1], m.between[pair]})
	}
	text, err := json.MarshalIndent(k, "", " ")
	return append(text, '\n'), err
}

// Decode reads measures. Those of another topology or version, and what is damaged, are an error as a whole.
func Decode(text []byte, topology string) (*Measures, error) {
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("the kept measures are damaged: %w", err)
	}
	switch {
	case k.Version != keptVersion:
		return nil, fmt.Errorf("the kept measures are of version %d, not %d", k.Version, keptVersion)
	case k.Topology != topology:
		return nil, fmt.Errorf("the kept measures are of topology %.64q, and this machine's is %s", k.Topology, topology)
	}
	m := NewMeasures(topology)
	for _, p := range k.Measures {
		if err := m.Set(p.From, p.To, p.Measured); err != nil {
			return nil, fmt.Errorf("the kept measures are damaged: %w", err)
		}
	}
	return m, nil
}

// Use puts measures where they say something of ranks of one host.
func (m *Matrix) Use(found *Measures) {
	for a := range m.Ranks {
		for b := range m.Ranks {
			if a == b || m.Ranks[a].Host != m.Ranks[b].Host {
				continue
			}
			if v, ok := found.Of(m.Ranks[a].Place(), m.Ranks[b].Place()); ok {
				_ = m.SetMeasure(a, b, v) // Set has looked at it
			}
		}
	}
}
