package cost

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"

	"hccl.dev/hccl/graph/topo"
)

// Hash tells topologies apart for which measures hold: nodes, links and their modelled bandwidths, not the names of files.
func Hash(g *topo.Graph, ranks []Rank) string {
	h := fnv.New64a()
	for _, n := range g.Nodes {
		fmt.Fprintf(h, "%d %s\n", n.Kind, n.Name)
	}
	for _, l := range g.Links {
		fmt.Fprintf(h, "%d %d %d %x\n", l.From, l.To, l.Type, math.Float64bits(l.Bandwidth))
	}
	for _, r := range ranks {
		fmt.Fprintf(h, "%d %d %q %q\n", r.Host, r.NUMA, r.Switch, r.Device)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// kept is the form of a cache file.
type kept struct {
	Version int      `json:"version"`
	Hash    string   `json:"hash"`
	Ranks   int      `json:"ranks"`
	Rates   []aProbe `json:"rates"`
}

type aProbe struct {
	From int     `json:"from"`
	To   int     `json:"to"`
	Rate float64 `json:"bytes_per_second"`
}

const cacheVersion = 1

// EncodeMeasures writes the measured cells, to be kept in a file under the hash.
func (m *Matrix) EncodeMeasures(hash string) ([]byte, error) {
	k := kept{Version: cacheVersion, Hash: hash, Ranks: len(m.Ranks), Rates: []aProbe{}}
	for a := range m.Cells {
		for b, c := range m.Cells[a] {
			if c.Source == Measure {
				k.Rates = append(k.Rates, aProbe{a, b, c.Bandwidth * 1e9})
			}
		}
	}
	return json.MarshalIndent(k, "", " ")
}

// DecodeMeasures takes measures from a file. Those of another topology, and what is damaged, change nothing and are an error.
func (m *Matrix) DecodeMeasures(text []byte, hash string) error {
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return fmt.Errorf("the kept measures are damaged: %w; they are taken anew", err)
	}
	if k.Version != cacheVersion || k.Hash != hash || k.Ranks != len(m.Ranks) {
		return fmt.Errorf("the kept measures are of %d ranks on topology %s (version %d), not of %d on %s: they are taken anew", k.Ranks, k.Hash,
			k.Version, len(m.Ranks), hash)
	}
	fresh := OfPlaces(m.Ranks, All)
	for _, p := range k.Rates {
		if err := fresh.SetMeasure(p.From, p.To, p.Rate); err != nil {
			return fmt.Errorf("the kept measures are damaged: %w", err)
		}
	}
	for _, p := range k.Rates {
		_ = m.SetMeasure(p.From, p.To, p.Rate) // was tried above
	}
	return nil
}
