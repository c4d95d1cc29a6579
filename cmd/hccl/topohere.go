package main

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	machine "hccl.dev/hccl/graph/detect"
	"hccl.dev/hccl/graph/gpus"
	"hccl.dev/hccl/graph/sysfs"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/params"
)

// here is the running machine, as the settings want it.
func here() *machine.Found {
	v := params.Look()
	return machine.Load(machine.Settings{File: v.TopoFile, Dump: v.TopoDumpFile, GPUs: gpus.Find})
}

// showHere shows the running machine: what it was made of in front, and what is odd about it behind.
func showHere(out, errors io.Writer) error {
	f := here()
	warn(errors, "this machine", f.Report)
	fmt.Fprintf(out, "this machine, by %s\n", f.From)
	if err := showMachine(out, f.Machine); err != nil {
		return err
	}
	return showNotes(out, f.Report)
}

func showNotes(out io.Writer, r *topo.Report) (err error) {
	for k, n := range r.Notes {
		if k == 0 {
			fmt.Fprintln(out)
		}
		_, err = fmt.Fprintf(out, "note: %s\n  %s\n", n.What, n.Remedy)
	}
	return err
}

func topoRecordCommand() *cobra.Command {
	return &cobra.Command{
		Use: "record [FILE]", Short: "writes down what the kernel says of this machine's topology", Args: cobra.MaximumNArgs(1),
		Long: "Writes to FILE, or to stdout, what hccl topo reads of /sys and /proc on this machine, and nothing else: NUMA nodes, the PCI " +
			"tree, interfaces and RDMA devices. It is for those who are asked why a machine is shown as it is, and for the library's tests. " +
			"Names of interfaces and numbers of RDMA devices are in it; addresses are not.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			out := cmd.OutOrStdout()
			if len(args) == 1 {
				f, err := os.Create(args[0])
				if err != nil {
					return err // names the file
				}
				defer func() { _ = f.Close() }()
				out = f
			}
			return sysfs.Record(out, os.DirFS("/"), runtime.GOARCH)
		},
	}
}
