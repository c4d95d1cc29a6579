// Command hccl is the tool that comes with the library. It measures and checks collective operations (hccl perf) and tells which
// library it finds (hccl version).
//
// It is a user of the library like any other: it loads libnccl.so.2, the one beside it or the one named with --lib, and calls
// NCCL's public C functions. What it measures is therefore what a C program gets, and it can measure any library with this
// interface. It imports nothing of the core.
//
// hccl perf starts its ranks by running itself once per rank (or as threads with --threads); they share one page of memory, in
// which rank 0 leaves the unique id and all meet at a barrier before a measurement. Rank 0 prints the table. The files in the
// order in which a measurement passes them: perf.go (flags), launch.go (ranks), page.go (barrier), measure.go (what a rank does),
// ops.go and values.go (what an operation does to data), table.go (what is printed), abi.go and abi.c (the library).
//
// The exit status is 0, or 1 if the data were wrong or anything failed; the reason is one sentence on stderr.
package main

import (
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"
)

func main() {
	runtime.LockOSThread() // children are tied to the life of the thread that starts them (see launch)
	if err := command().Execute(); err != nil {
		fmt.Fprintf(os.Stderr, "hccl: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "hccl", Short: "measures and checks collective operations", SilenceUsage: true, SilenceErrors: true}
	root.CompletionOptions.HiddenDefaultCmd = true
	lib := root.PersistentFlags().String("lib", "", "library to load (default: ../lib/libnccl.so.2 beside this tool)")
	root.AddCommand(perfCommand(lib), versionCommand(lib))
	return root
}

func versionCommand(lib *string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "tells which library is found and its version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := openLibrary(*lib)
			if err != nil {
				return err
			}
			version, err := libraryVersion()
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "NCCL interface %s, library %s\n", version, path)
			}
			return err
		},
	}
}
