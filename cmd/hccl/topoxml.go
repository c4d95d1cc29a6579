package main

import (
	"github.com/spf13/cobra"

	"hccl.dev/hccl/graph/ncclxml"
)

func topoXMLCommand() *cobra.Command {
	return &cobra.Command{
		Use: "xml FILE", Short: "writes a topology without its faults, for NCCL_TOPO_FILE", Args: oneFile,
		Long: "Writes the topology in FILE to stdout in NCCL's form, without what is wrong in it; what that was stands on stderr. Bandwidths " +
			"that only a person can know, such as a speed text that is none, are left as they are: hccl topo check tells them.",
		RunE: func(cmd *cobra.Command, args []string) error {
			m, report, err := readMachine(args[0])
			if err != nil {
				return err
			}
			warn(cmd.ErrOrStderr(), args[0], report)
			return ncclxml.Write(cmd.OutOrStdout(), m)
		},
	}
}
