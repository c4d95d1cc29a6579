package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// asked are the flags as they were given; settle makes a job of them.
type asked struct {
	job
	op                *operation
	least, most, step size
	typ, red, root    string
	asRanks, as       int
	separate, ignored int
	cpu, graph        int
	libraryMem        int
	asThreads         bool
	mixFile           string
}

func perfCommand(lib *string) *cobra.Command {
	a := newAsked(nil)
	perf := &cobra.Command{
		Use: "perf [OPERATION]", Short: "times operations over a range of sizes and checks their results", Long: perfText + "\n\n" + mixText,
		Example: "  hccl perf all_reduce -b 8 -e 64M -f 2 --ranks 4\n  mpirun -np 4 hccl perf alltoall -d half\n" +
			"  hccl perf all_reduce --throughput --ranks 2\n  hccl perf --mix step.mix --percentiles",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noSuch("operation", args[0], operationNames())
			}
			if a.mixFile == "" {
				return fmt.Errorf("name an operation (%s) or a list of them with --mix FILE", list(operationNames()))
			}
			return a.start(cmd.Flags(), *lib)
		},
	}
	a.flags(perf.Flags())
	perf.Flags().StringVar(&a.mixFile, "mix", "", "run the list of calls in this `FILE` in place of one operation")
	for k := range operations {
		perf.AddCommand(operationCommand(&operations[k], lib))
	}
	return perf
}

func operationNames() (all []string) {
	for _, op := range operations {
		all = append(all, op.name)
	}
	return all
}

func operationCommand(op *operation, lib *string) *cobra.Command {
	a := newAsked(op)
	cmd := &cobra.Command{
		Use: op.name, Aliases: []string{op.name + "_perf"}, Short: op.about, Args: nothingMore,
		Long: strings.ToUpper(op.about[:1]) + op.about[1:] + ". hccl perf --help explains the columns, and where ranks come from.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.start(cmd.Flags(), *lib) },
	}
	a.flags(cmd.Flags())
	complete(cmd, "datatype", typeNames())
	complete(cmd, "op", reductionNames())
	return cmd
}

// complete offers a flag's values to the shell.
func complete(cmd *cobra.Command, flag, values string) {
	words := append(strings.Split(values, ", "), "all")
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func newAsked(op *operation) *asked { return &asked{op: op} }

// flags are those of nccl-tests, and after them those of this tool.
func (a *asked) flags(f *pflag.FlagSet) {
	a.least, a.most, a.step = 8, 32<<20, 1<<20
	f.SortFlags = false
	f.VarP(&a.least, "minbytes", "b", "smallest size, with K, M or G for powers of 1024")
	f.VarP(&a.most, "maxbytes", "e", "largest size")
	f.VarP(ranged(&a.factor, 2, 1, 1<<20), "stepfactor", "f", "multiply the size by this at each step; 1: add -i")
	f.VarP(&a.step, "stepbytes", "i", "add this to the size at each step, where -f is not given")
	f.VarP(ranged(&a.iters, 20, 1, 1<<30), "iters", "n", "timed calls for each size")
	f.VarP(ranged(&a.warmup, 5, 0, 1<<30), "warmup_iters", "w", "calls before them")
	f.VarP(ranged(&a.fold, 1, 1, 1<<16), "agg_iters", "m", "calls of one group, in each of the timed repetitions")
	f.VarP(ranged(&a.checks, 1, 0, 1000), "check", "c", "calls whose every element is compared with what it must be, for each size")
	f.StringVarP(&a.typ, "datatype", "d", "float", "element type: "+typeNames()+", or all")
	f.StringVarP(&a.red, "op", "o", "sum", "reduction: "+reductionNames()+", or all")
	f.StringVarP(&a.root, "root", "r", "0", "root rank, or all")
	f.VarP(ranged(&a.combine, 1, 0, 3), "average", "a", "time that is told: 0 of rank 0, 1 mean of the ranks, 2 least, 3 most")
	f.VarP(ranged(&a.separate, 0, 0, 1), "blocking", "z", "1: ranks wait for each other before each call; the wait is not timed")
	f.VarP(ranged(&a.threads, 1, 1, mostRanks), "nthreads", "t", "threads of a process")
	f.VarP(ranged(&a.held, 1, 1, mostRanks), "ngpus", "g", "ranks of a thread, whose calls are one group")
	f.VarP(ranged(&a.cpu, 0, 0, 1), "report_cputime", "C",
		"1: name the time cputime; calls on host memory return with the result, so that it is the same time")
	f.VarP(ranged(&a.libraryMem, 0, 0, 2), "local_register", "R",
		"1 or 2: buffers are memory of ncclMemAlloc, which ranks of one host read in place")
	f.VarP(&duration{&a.limit, 0, 1e6}, "timeout", "T", "end with an error when one size takes longer; 0: never")
	f.VarP(ranged(&a.graph, 0, 0, 1<<30), "cudagraph", "G", "only 0: host memory has no CUDA graphs")
	f.VarP(ranged(&a.ignored, 0, 0, 1), "parallel_init", "p", "accepted: threads always make their communicators at the same time")
	f.VarP(ranged(new(int), 1, 0, 1), "stream_null", "y", "accepted: calls always use the NULL stream")
	f.StringVarP(&a.report.csvFile, "output_file", "F", "",
		"write results to this `FILE` too, as CSV with the three header lines of nccl-tests")
	f.StringVarP(&a.report.jsonFile, "json", "J", "", "write results to this `FILE` too, as JSON")
	f.BoolVar(&a.report.csv, "csv", false, "print CSV in place of the table")
	f.BoolVar(&a.percentiles, "percentiles", false,
		"time each call; two more columns for each half, p50 and p99, stand after the others")
	f.BoolVar(&a.throughput, "throughput", false,
		"for each size as many calls as take --seconds, from 4K to 64M by 4 unless told; calls per second as a last column")
	a.seconds = 1
	f.Var(&duration{&a.seconds, 0.01, 3600}, "seconds", "time for each measurement of --throughput, after the warm-up")
	f.Var(ranged(&a.asRanks, 0, 0, mostRanks), "ranks", "number of ranks, all on this machine; 0: from the environment, or else 2")
	f.BoolVar(&a.asThreads, "threads", false, "ranks are threads of one process, not processes")
	f.StringVar(&a.meet.folder, "meet", "", "`FOLDER` shared by all hosts, where processes of Open MPI or Slurm find each other")
	f.Var(ranged(&a.as, -1, -1, mostRanks-1), "as-process", "")
	_ = f.MarkHidden("as-process") // how a process that this tool started is told which it is
}

// start does the job, in whatever part of it this process is.
func (a *asked) start(f *pflag.FlagSet, lib string) error {
	a.lib = lib
	w, trouble := detect(os.Getenv)
	if err := a.settle(f, w, trouble); err != nil {
		return err
	}
	return a.begin()
}

func (a *asked) begin() error {
	switch j := &a.job; {
	case a.as >= 0:
		return runProcess(j, a.as)
	case j.world != nil:
		return runInWorld(j)
	case j.ranks == j.perProcess(): // one process is enough
		return runThreads(j, new(page), nil, 0)
	default:
		return launch(j)
	}
}
