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
)

// costs is the JSON of hccl topo matrix. Rows send to columns.
type costs struct {
	File      string          `json:"file"`
	Hosts     int             `json:"hosts"`
	Ranks     []cost.Rank     `json:"ranks"`
	Cost      [][]float64     `json:"cost"`
	Bandwidth [][]float64     `json:"bandwidth"` // GB/s; 0: not known
	Source    [][]cost.Source `json:"source"`
	Type      [][]string      `json:"type"`
}

func topoMatrixCommand() *cobra.Command {
	var file, scope string
	var hosts int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "matrix [FILE]", Short: "tells the cost of each pair of ranks", Args: cobra.ArbitraryArgs,
		Long: "Tells the cost of each ordered pair of ranks, for whoever places ranks. A cost says how long a byte takes; 1 is 48 GB/s, a " +
			"PCIe 5.0 x16 link. Where links are known it is 48 over the path's GB/s; where only places are known it is a weight: 1 in one " +
			"NUMA node, 3 across NUMA nodes, 15 through one network switch, 30 beyond. With --hosts the file stands for that many hosts; " +
			"without a file it is this machine.",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := fileOf(file, args)
			if err != nil {
				return err
			}
			t, err := tableOf(name)
			if err != nil {
				return err
			}
			how, ok := map[string]cost.Scope{"all": cost.All, "local": cost.LocalOnly, "none": cost.Nothing}[scope]
			if !ok || hosts < 1 || hosts > 4096 {
				return fmt.Errorf("--scope is all, local or none, and --hosts from 1 to 4096, not %s and %d", scope, hosts)
			}
			m := cost.OfHosts(t, hosts, how)
			if len(m.Ranks) == 0 {
				return errors.New("the topology has no GPU with a rank, so there is no cost to tell")
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(costsOf(m, name, hosts))
			}
			return printCosts(cmd.OutOrStdout(), m)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the topology `FILE`")
	cmd.Flags().StringVar(&scope, "scope", "all", "`WHAT` counts: all, local (hosts are equally far from each other) or none (all ranks are)")
	cmd.Flags().IntVar(&hosts, "hosts", 1, "`NUMBER` of equal hosts")
	cmd.Flags().BoolVarP(&asJSON, "json", "J", false, "as JSON")
	return cmd
}

func costsOf(m *cost.Matrix, file string, hosts int) costs {
	c := costs{File: baseOf(file), Hosts: hosts, Ranks: m.Ranks}
	for _, row := range m.Cells {
		c.Cost = append(c.Cost, column(row, func(c cost.Cell) float64 { return c.Cost }))
		c.Bandwidth = append(c.Bandwidth, column(row, func(c cost.Cell) float64 { return c.Bandwidth }))
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
		for _, c := range row {
			fmt.Fprintf(w, "%.4g\t", c.Cost)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
