package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/internal/params"
)

// costs is the JSON of hccl topo matrix. Rows send to columns.
type costs struct {
	File      string          `json:"file"`
	Hosts     int             `json:"hosts"`
	Ranks     []cost.Rank     `json:"ranks"`
	Cost      [][]float64     `json:"cost"`
	Bandwidth [][]float64     `json:"bandwidth"` // GB/s; 0: not known
	Latency   [][]float64     `json:"latency"`   // us; 0: not measured
	Source    [][]cost.Source `json:"source"`
	Type      [][]string      `json:"type"`
}

func topoMatrixCommand() *cobra.Command {
	var file, scope string
	var hosts, ranks int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "matrix [FILE]", Short: "tells the cost of each pair of ranks", Args: cobra.ArbitraryArgs,
		Long: "Tells the cost of each ordered pair of ranks, for whoever places ranks. A cost says how long a byte takes; 1 is 48 GB/s, a " +
			"PCIe 5.0 x16 link. Where links are known it is 48 over the path's GB/s; where only places are known it is a weight: 1 in one " +
			"NUMA node, 3 across NUMA nodes, 15 through one network switch, 30 beyond. With --hosts the file stands for that many hosts; " +
			"without a file it is this machine, whose ranks are on its GPUs or, where it has none, on its processors, two for each last-level " +
			"cache. What hccl topo probe has measured on this machine comes before both.",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := fileOf(file, args)
			if err != nil {
				return err
			}
			if scope == "" {
				scope = params.Look().TopoScope
			}
			how, ok := map[string]cost.Scope{"all": cost.All, "local": cost.LocalOnly, "none": cost.Nothing}[scope]
			if !ok || hosts < 1 || hosts > 4096 {
				return fmt.Errorf("--scope is all, local or none, and --hosts from 1 to 4096, not %s and %d", scope, hosts)
			}
			if name != "" && cmd.Flags().Changed("ranks") {
				return errors.New("--ranks is for this machine: in a file the ranks are those of its GPUs")
			}
			m, err := matrixOf(cmd.ErrOrStderr(), name, hosts, ranks, how)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(costsOf(m, name, hosts))
			}
			return printCosts(cmd.OutOrStdout(), m)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the topology `FILE`")
	cmd.Flags().StringVar(&scope, "scope", "", "`WHAT` counts: all, local (hosts are equally far from each other) or none (all ranks are); "+
		"HCCL_TOPO_SCOPE where it is not given")
	cmd.Flags().IntVar(&hosts, "hosts", 1, "`NUMBER` of equal hosts")
	cmd.Flags().Var(ranged(&ranks, 0, 0, mostRanks), "ranks", "`NUMBER` of ranks on the processors of this machine; 0: two for each cache")
	cmd.Flags().BoolVarP(&asJSON, "json", "J", false, "as JSON")
	return cmd
}

// matrixOf is that of the GPUs in a file or of this machine, or of its processors.
func matrixOf(said io.Writer, name string, hosts, ranks int, scope cost.Scope) (*cost.Matrix, error) {
	m := &cost.Matrix{}
	topology := ""
	if name != "" || ranks == 0 {
		t, err := tableOf(name)
		if err != nil {
			return nil, err
		}
		m, topology = cost.OfHosts(t, hosts, scope), cost.Hash(t.Graph)
	}
	switch {
	case name != "" && len(m.Ranks) == 0:
		return nil, errors.New("the topology has no GPU with a rank, so there is no cost to tell")
	case name != "":
		return m, nil // of another machine, perhaps
	case len(m.Ranks) == 0:
		var all []cost.Rank
		for h := range hosts {
			for _, s := range seats(ranks) {
				s.Host = h
				all = append(all, s.Rank)
			}
		}
		m, topology = cost.OfPlaces(all, scope), hostTopology()
	}
	found, err := keptCosts().Read(topology)
	if err != nil {
		fmt.Fprintf(said, "hccl: measured costs: %v\n", err)
	}
	if scope != cost.Nothing {
		m.Use(found)
	}
	return m, nil
}

func costsOf(m *cost.Matrix, file string, hosts int) costs {
	c := costs{File: baseOf(file), Hosts: hosts, Ranks: m.Ranks}
	for _, row := range m.Cells {
		c.Cost = append(c.Cost, column(row, func(c cost.Cell) float64 { return c.Cost }))
		c.Bandwidth = append(c.Bandwidth, column(row, func(c cost.Cell) float64 { return c.Bandwidth }))
		c.Latency = append(c.Latency, column(row, func(c cost.Cell) float64 { return c.Latency }))
		c.Source = append(c.Source, column(row, func(c cost.Cell) cost.Source { return c.Source }))
		c.Type = append(c.Type, column(row, func(c cost.Cell) string { return c.Type }))
	}
	return c
}

// baseOf is a file's name; this machine has none.
func baseOf(file string) string {
	if file == "" {
		return ""
	}
	return filepath.Base(file)
}

// column takes one figure out of each cell of a row.
func column[T any](row []cost.Cell, of func(cost.Cell) T) (all []T) {
	for _, c := range row {
		all = append(all, of(c))
	}
	return all
}

func printCosts(out io.Writer, m *cost.Matrix) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "cost\t")
	for to := range m.Ranks {
		fmt.Fprintf(w, "%d\t", to)
	}
	fmt.Fprintln(w)
	for from, row := range m.Cells {
		fmt.Fprintf(w, "%d\t", from)
		for to, c := range row {
			mark := marks[c.Source]
			if to == from {
				mark = ""
			}
			fmt.Fprintf(w, "%.4g%s\t", c.Cost, mark)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nm measured; w a weight, by the ranks' places alone; else by the bandwidth of the path")
	return err
}

// marks tell costs of one source from those of another in the table.
var marks = map[cost.Source]string{cost.Measure: "m", cost.Weight: "w"}
