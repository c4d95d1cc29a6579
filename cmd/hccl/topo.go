package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/path"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/plural"
)

// topoCommand looks at machines as data: but for its probe it needs no library, and no GPU.
func topoCommand(lib *string) *cobra.Command {
	var file, svg string
	var hosts int
	cmd := &cobra.Command{
		Use: "topo [FILE]", Short: "shows, checks and searches topologies", Args: cobra.ArbitraryArgs,
		Long: "Works on topologies in NCCL's XML format, as NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads them. With a file and no " +
			"command it shows the machine as a tree, and the paths between its GPUs and network ports as a table. Without a file it is this " +
			"machine, as the kernel and NVIDIA's driver show it; NCCL_TOPO_FILE and NCCL_TOPO_DUMP_FILE count then as for the library.",
	}
	cmd.AddCommand(topoCheckCommand(), topoExplainCommand(), topoMatrixCommand(), topoXMLCommand(), topoGraphCommand())
	cmd.AddCommand(topoSearchCommand(), topoBoundCommand(), topoFabricCommand(), topoRecordCommand(), topoProbeCommand(lib))
	cmd.Flags().StringVar(&file, "file", "", "the topology `FILE`")
	cmd.Flags().StringVar(&svg, "svg", "", "draw the machine and the rings found for it into a `FILE` instead")
	cmd.Flags().IntVarP(&hosts, "hosts", "n", 1, "`NUMBER` of such machines that the rings of --svg join")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && file == "" && svg == "" {
			return showHere(cmd.OutOrStdout(), cmd.ErrOrStderr())
		}
		if len(args) > 0 && !exists(args[0]) {
			var known []string
			for _, c := range shown(cmd) {
				known = append(known, c.Name())
			}
			return noSuch("topology file or command of topo", args[0], known)
		}
		name, err := fileOf(file, args)
		if err != nil {
			return err
		}
		m, report, err := readMachine(name)
		if err != nil {
			return err
		}
		warn(cmd.ErrOrStderr(), name, report)
		if hosts < 1 {
			return fmt.Errorf("--hosts is %d: want 1 or more", hosts)
		}
		if svg != "" {
			return drawMachine(svg, m, hosts)
		}
		return showMachine(cmd.OutOrStdout(), m)
	}
	return cmd
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// fileOf is the file named with --file, or by the only word; "" for this machine.
func fileOf(flag string, args []string) (string, error) {
	if flag != "" {
		args = append([]string{flag}, args...)
	}
	switch len(args) {
	case 0:
		return "", nil
	case 1:
		return args[0], nil
	}
	return "", errors.New("name one topology file, as a word or with --file, or none for this machine")
}

// warn tells that a file has faults; hccl topo check tells which.
func warn(out io.Writer, file string, r *topo.Report) {
	if n := len(r.Faults); n > 0 {
		fmt.Fprintf(out, "hccl: %s has %s, the first: %v; hccl topo check tells all\n", file, plural.Of(n, "fault"), r.Faults[0])
	}
}

// tableOf has the paths of the machine in a file, or of this one.
func tableOf(file string) (*path.Table, error) {
	m, _, err := readMachine(file)
	if err != nil {
		return nil, err
	}
	return path.New(topo.Build(m)), nil
}

// readMachine reads the topology in a file, "" for this machine. What is wrong in it is in the report.
func readMachine(file string) (*topo.Machine, *topo.Report, error) {
	if file == "" {
		f := here()
		return f.Machine, f.Report, nil
	}
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
