package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/ncclxml"
)

func topoXMLCommand() *cobra.Command {
	return &cobra.Command{
		Use: "xml [FILE]", Short: "writes a topology without its faults, for NCCL_TOPO_FILE", Args: cobra.ArbitraryArgs,
		Long: "Writes the topology in FILE, or that of this machine, to stdout in NCCL's form, without what is wrong in it; what that was " +
			"stands on stderr. Bandwidths that only a person can know, such as a speed text that is none, are left as they are: hccl topo " +
			"check tells them.",
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
			return ncclxml.Write(cmd.OutOrStdout(), m)
		},
	}
}
