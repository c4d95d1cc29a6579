package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/plural"
)

// checked is the JSON of hccl topo check.
type checked struct {
	File string `json:"file"`
	topo.Report
	Graph *checked `json:"graph,omitempty"`
}

func checkedOf(file string, r *topo.Report) *checked {
	c := &checked{File: filepath.Base(file), Report: topo.Report{Faults: []topo.Fault{}, Notes: []topo.Fault{}}} // [] rather than null
	c.Faults, c.Notes = append(c.Faults, r.Faults...), append(c.Notes, r.Notes...)
	return c
}

func topoCheckCommand() *cobra.Command {
	var asJSON bool
	var graph string
	cmd := &cobra.Command{
		Use: "check FILE", Short: "says what is wrong in a topology file", Args: oneFile,
		Long: "Says what is wrong in a topology file, with line, consequence and remedy: NVLinks that lead nowhere or do not agree at their " +
			"ends, more of them than the GPU has, link speeds that are none, devices that are lost where they stand, missing or double " +
			"numbers. Notes tell what is odd but can be right. The exit status is 1 if there are faults, and 0 if there are none.",
		RunE: func(cmd *cobra.Command, args []string) error {
			m, report, err := readMachine(args[0])
			if report, err = faultsOf(report, err); err != nil {
				return err
			}
			all := checkedOf(args[0], report)
			if graph != "" {
				found, err := checkGraph(graph, m)
				if err != nil {
					return err
				}
				all.Graph = checkedOf(graph, found)
			}
			return tellChecked(cmd.OutOrStdout(), args[0], graph, all, asJSON)
		},
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "J", false, "as JSON")
	cmd.Flags().StringVar(&graph, "graph", "", "also check the channels in a `FILE` of NCCL_GRAPH_FILE's form against the topology")
	return cmd
}

// faultsOf makes a report of an error that says why a text is none of NCCL's.
func faultsOf(r *topo.Report, err error) (*topo.Report, error) {
	if fault, ok := asFault(err); ok {
		return &topo.Report{Faults: []topo.Fault{fault}}, nil
	}
	return r, err
}

func checkGraph(file string, m *topo.Machine) (*topo.Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err // names the file
	}
	defer func() { _ = f.Close() }()
	var g *topo.Graph
	if m != nil {
		g = topo.Build(m)
	}
	_, report, err := ncclxml.ReadSearches(f, g)
	if report, err = faultsOf(report, err); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return report, nil
}

func tellChecked(out io.Writer, file, graph string, all *checked, asJSON bool) error {
	faults := len(all.Faults)
	if asJSON {
		if err := writeIndented(out, all); err != nil {
			return err
		}
	} else {
		printReport(out, file, &all.Report)
	}
	if all.Graph != nil {
		faults += len(all.Graph.Faults)
		if !asJSON {
			printReport(out, graph, &all.Graph.Report)
		}
	}
	if faults > 0 {
		return exitStatus(1)
	}
	return nil
}

func printReport(out io.Writer, file string, r *topo.Report) {
	for _, f := range r.Faults {
		fmt.Fprintf(out, "%s\n  %s; %s\n", place(file, f), f.What, f.Remedy)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "%s\n  note: %s; %s\n", place(file, n), n.What, n.Remedy)
	}
	fmt.Fprintf(out, "%s: %s, %s\n", file, plural.Of(len(r.Faults), "fault"), plural.Of(len(r.Notes), "note"))
}

// place is where a fault is, in the form that editors jump to.
func place(file string, f topo.Fault) string {
	if f.Line == 0 {
		return file + ":"
	}
	return fmt.Sprintf("%s:%d:", file, f.Line)
}
