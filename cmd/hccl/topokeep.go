package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/cost/store"
	"hccl.dev/hccl/internal/cpuset"
)

// tellPairs tells what the ranks found, at rank 0, and keeps it on each host, by its first rank.
func (r *runner) tellPairs(found [][]cost.Measured) error {
	m := measuredMatrix(r.page, found)
	kept, err := "not kept: --forget", error(nil)
	if !r.probe.forget {
		kept, err = r.keep(m, found)
	}
	if r.first == 0 {
		if r.probe.asJSON {
			err = errors.Join(err, json.NewEncoder(os.Stdout).Encode(costsOf(m, "", 1+slices.MaxFunc(m.Ranks, byHost).Host)))
		} else {
			err = errors.Join(err, printMeasures(os.Stdout, m, kept))
		}
	}
	return errors.Join(err, r.together())
}

func byHost(a, b cost.Rank) int { return a.Host - b.Host }

// measuredMatrix is what is known of all ranks: their places, and what was measured.
func measuredMatrix(p *page, found [][]cost.Measured) *cost.Matrix {
	var hosts []string
	ranks := make([]cost.Rank, len(found))
	for k := range ranks {
		f := &p.of[k]
		host := slices.Index(hosts, f.hostName())
		if host < 0 {
			hosts, host = append(hosts, f.hostName()), len(hosts)
		}
		ranks[k] = cost.Rank{Host: host, NUMA: int(f.numa), Cache: int(f.cache)}
	}
	m := cost.OfPlaces(ranks, cost.All)
	for a := range found {
		for b, v := range found[a] {
			if a != b {
				_ = m.SetMeasure(a, b, v) // one that makes no sense leaves the weight
			}
		}
	}
	return m
}

// keep has the first rank of each host keep what was measured there, and says what became of it. Ranks that waited for a processor say
// nothing of the ways.
func (r *runner) keep(m *cost.Matrix, found [][]cost.Measured) (string, error) {
	var here []int
	for k := range m.Ranks {
		if m.Ranks[k].Host == m.Ranks[r.first].Host {
			here = append(here, k)
		}
	}
	if have := processors(); len(here) > have {
		return fmt.Sprintf("not kept: %d ranks on %d processors say more of these than of the ways", len(here), have), nil
	}
	if len(here) == 1 {
		return "not kept: measures between hosts are told alone", nil
	}
	if here[0] != r.first {
		return "", nil
	}
	name, err := addTo(keptCosts(), m, found, m.Ranks[r.first].Host)
	if err != nil {
		return "", fmt.Errorf("the measures are not kept: %w", err)
	}
	return "kept in " + name, nil
}

// processors is how many this machine has, also those that this process may not use.
func processors() int {
	text, _ := os.ReadFile("/sys/devices/system/cpu/online")
	if set, err := cpuset.Parse(strings.TrimSpace(string(text))); err == nil && set.Len() > 0 {
		return set.Len()
	}
	return runtime.NumCPU()
}

// addTo adds what was measured within a host to what is kept of its topology, and returns the file's name. Several pairs of the same
// places count by the middle one.
func addTo(where store.Where, m *cost.Matrix, found [][]cost.Measured, host int) (string, error) {
	topology := hostTopology()
	all, err := where.Read(topology)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "hccl: %v; it is written anew\n", err)
	}
	if all == nil {
		all = cost.NewMeasures(topology)
	}
	pairs := map[[2]string][]cost.Measured{}
	for a := range found {
		for b, v := range found[a] {
			if a != b && m.Ranks[a].Host == host && m.Ranks[b].Host == host {
				way := [2]string{m.Ranks[a].Place(), m.Ranks[b].Place()}
				pairs[way] = append(pairs[way], v)
			}
		}
	}
	for way, vs := range pairs {
		slices.SortFunc(vs, func(a, b cost.Measured) int {
			if a.Rate < b.Rate {
				return -1
			}
			return 1
		})
		if err := all.Set(way[0], way[1], vs[len(vs)/2]); err != nil {
			return "", err
		}
	}
	return where.Write(all)
}

// printMeasures writes a line for each ordered pair.
func printMeasures(out io.Writer, m *cost.Matrix, kept string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "from\tto\tGB/s\tus\tfrom place\tto place")
	for a, row := range m.Cells {
		for b, c := range row {
			if a != b {
				fmt.Fprintf(w, "%d\t%d\t%.4g\t%.3g\t%s\t%s\n", a, b, c.Bandwidth, c.Latency, placeText(m.Ranks[a]), placeText(m.Ranks[b]))
			}
		}
	}
	if err := w.Flush(); err != nil || kept == "" {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", kept)
	return err
}

func placeText(r cost.Rank) string { return fmt.Sprintf("host%d/%s", r.Host, r.Place()) }
