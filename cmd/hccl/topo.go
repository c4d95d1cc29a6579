package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/topo"
)

// topoCommand looks at machines as data: it needs no library and no GPU.
func topoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "topo", Short: "shows, checks and searches topologies", Args: cobra.ArbitraryArgs,
		Long: "Works on topologies in NCCL's XML format, as NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads them.",
	}
	cmd.AddCommand(topoCheckCommand())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		var known []string
		for _, c := range shown(cmd) {
			known = append(known, c.Name())
		}
		return noSuch("command of topo", args[0], known)
	}
	return cmd
}

// readMachine reads the topology in a file. What is wrong in it is in the report.
func readMachine(file string) (*topo.Machine, *topo.Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err // names the file
	}
	defer func() { _ = f.Close() }()
	m, report, err := ncclxml.Read(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, report, nil
}

// oneFile is the only word behind a command.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("name one topology file: %s FILE", cmd.CommandPath())
	}
	return nil
}

func writeIndented(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// asFault makes a fault of an error that says where the text is no topology.
func asFault(err error) (topo.Fault, bool) {
	var bad *ncclxml.Error
	if !errors.As(err, &bad) {
		return topo.Fault{}, false
	}
	return topo.Fault{Line: bad.Line, What: bad.What, Remedy: bad.Remedy}, true
}
