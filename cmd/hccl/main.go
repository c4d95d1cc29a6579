// Command hccl is the tool that comes with the library. It measures and checks collective operations (hccl perf), starts programs as
// ranks of this machine (hccl run), lists settings (hccl params) and tells which library it finds (hccl version).
//
// It is a user of the library like any other: it loads libnccl.so.2, the one beside it or the one named with --lib, and calls
// its public C functions. What it measures is therefore what a C program gets, and it can measure any library with this
// interface. It imports nothing of the core.
//
// hccl perf starts its ranks by running itself (or as threads with --threads); they share one page of memory, in which rank 0 leaves
// the unique id and all meet at a barrier before a measurement. Where another launcher has started the processes, they join a star
// of TCP connections instead, and rank 0 is found by what the launcher offers. The files in the order in which a measurement passes
// them: perf.go (flags), settle.go and job.go (what they mean), subject.go and mix.go (what is measured), world.go (who started this
// process), launch.go (ranks), page.go, or meet.go, pmi.go and hub.go (how they find each other and wait), measure.go and mixrun.go
// (what a rank does), ops.go, spans.go, stage.go and values.go (what an operation does to data), output.go, table.go and export.go
// (what is told), abi.go and abi.c (the library). hccl run is run.go and lines.go.
//
// The exit status is 0, or 1 if the data were wrong or anything failed; the reason is one sentence on stderr. hccl run ends with the
// status of the rank that failed first.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	runtime.LockOSThread() // children are tied to the life of the thread that starts them (see launch)
	err := command().Execute()
	var status exitStatus
	if errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil {
		die(err)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{Use: "hccl", Short: "measures, checks and starts collective communication", SilenceUsage: true,
		SilenceErrors: true, Args: cobra.ArbitraryArgs,
		Long: "The tool of HCCL: it measures and checks operations, starts programs as ranks, and tells which library it finds."}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		var known []string
		for _, c := range shown(root) {
			known = append(known, c.Name())
		}
		return noSuch("command", args[0], known)
	}
	lib := root.PersistentFlags().String("lib", "", "`FILE` of the library to load (default: ../lib/libnccl.so.2 beside this tool)")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(perfCommand(lib), runCommand(), paramsCommand(), versionCommand(lib), topoCommand(lib), manCommand())
	refuseShells(root)
	return root
}

// refuseShells has the command for completion, which cobra makes, refuse a shell that it does not know: by itself it prints its help
// and ends well, and a script would install that.
func refuseShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic("hccl: there is no command for completion: " + err.Error())
	}
	var shells []string
	for _, s := range shown(c) {
		shells = append(shells, s.Name())
	}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("completion: name the shell: hccl completion %s", strings.Join(shells, "|"))
		}
		return fmt.Errorf("completion: no script for %s; there are %s", args[0], list(shells))
	}
}

func versionCommand(lib *string) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "tells which library is found and its version", Args: nothingMore,
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
