package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/plural"
)

func topoXMLCommand() *cobra.Command {
	return &cobra.Command{
		Use: "xml [FILE]", Short: "writes a topology without its faults, for NCCL_TOPO_FILE", Args: cobra.ArbitraryArgs,
		Long: "Writes the topology in FILE, or that of this machine, to stdout in NCCL's form, without what is wrong in it: what counts is " +
			"written, such as 8 GT/s for a speed that is none, and a vendor as CPUID spells it. What was wrong stands on stderr, and so does what " +
			"only a person can mend, such as NVLinks that are too many together, and is written as it was.",
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := fileOf("", args)
			if err != nil {
				return err
			}
			m, report, err := readMachine(name)
			if err != nil {
				return err
			}
			warn(cmd.ErrOrStderr(), cmp.Or(name, "this machine"), report)
			topo.Mend(m)
			var text bytes.Buffer
			if err := ncclxml.Write(&text, m); err != nil {
				return err
			}
			if name != "" {
				warnOfRest(cmd.ErrOrStderr(), text.Bytes())
			}
			_, err = cmd.OutOrStdout().Write(text.Bytes())
			return err
		},
	}
}

// warnOfRest tells which faults are still in what is written.
func warnOfRest(out io.Writer, text []byte) {
	if _, r, err := ncclxml.Read(bytes.NewReader(text)); err == nil && len(r.Faults) > 0 {
		fmt.Fprintf(out, "hccl: %s left in what is written, the first: %v\n", plural.Of(len(r.Faults), "fault"), r.Faults[0])
	}
}
