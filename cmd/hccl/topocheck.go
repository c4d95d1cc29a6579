package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/topo"
)

// checked is the JSON of hccl topo check.
type checked struct {
	File string `json:"file"`
	topo.Report
}

func topoCheckCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check FILE", Short: "says what is wrong in a topology file", Args: oneFile,
		Long: "Says what is wrong in a topology file, with line, consequence and remedy: NVLinks that lead nowhere or do not agree at their " +
			"ends, more of them than the GPU has, link speeds that are none, devices that are lost where they stand, missing or double " +
			"numbers. Notes tell what is odd but can be right. The exit status is 1 if there are faults, and 0 if there are none.",
		RunE: func(cmd *cobra.Command, args []string) error {
			_, report, err := readMachine(args[0])
			if fault, ok := asFault(err); ok {
				report = &topo.Report{Faults: []topo.Fault{fault}}
			} else if err != nil {
				return err
			}
			if err := printReport(cmd.OutOrStdout(), args[0], report, asJSON); err != nil {
				return err
			}
			if len(report.Faults) > 0 {
				return exitStatus(1)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "J", false, "as JSON")
	return cmd
}

func printReport(out io.Writer, file string, r *topo.Report, asJSON bool) error {
	if asJSON {
		all := checked{filepath.Base(file), topo.Report{Faults: []topo.Fault{}, Notes: []topo.Fault{}}}
		all.Faults, all.Notes = append(all.Faults, r.Faults...), append(all.Notes, r.Notes...)
		return writeIndented(out, all)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(out, "%s\n  %s\n", place(file, f), f.What+"; "+f.Remedy)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(out, "%s\n  note: %s; %s\n", place(file, n), n.What, n.Remedy)
	}
	_, err := fmt.Fprintf(out, "%s: %d faults, %d notes\n", file, len(r.Faults), len(r.Notes))
	return err
}

// place is where a fault is, in the form that editors jump to.
func place(file string, f topo.Fault) string {
	if f.Line == 0 {
		return file + ":"
	}
	return fmt.Sprintf("%s:%d:", file, f.Line)
}
