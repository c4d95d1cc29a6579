package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// job is one sweep: an operation over a range of sizes. All ranks have the same.
type job struct {
	op             *operation
	typ            *elementType
	red            *reduction
	lib            string
	least, most    int // bytes of the larger of a rank's buffers
	step, factor   int
	iters, warmup  int
	check, threads bool
	root, ranks    int
}

const (
	mostRanks = 64      // values.go keeps sums of so many ranks exact
	mostBytes = 1 << 36 // of one buffer
)

func perfCommand(lib *string) *cobra.Command {
	perf := &cobra.Command{Use: "perf", Short: "times an operation over a range of sizes and checks its results"}
	for k := range operations {
		perf.AddCommand(operationCommand(&operations[k], lib))
	}
	return perf
}

// operationCommand reads the flags of nccl-tests, where they make sense without a GPU.
func operationCommand(op *operation, lib *string) *cobra.Command {
	j := &job{op: op}
	least, most, step := size(8), size(32<<20), size(0)
	check, typ, red, as := 1, "float", "sum", -1
	cmd := &cobra.Command{
		Use: op.name, Short: "times " + strings.ReplaceAll(op.name, "_", "-"), Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			j.least, j.most, j.step, j.check, j.lib = int(least), int(most), int(step), check == 1, *lib
			if err := j.choose(typ, red); err != nil {
				return err
			}
			if as >= 0 {
				return runRankProcess(j, as)
			}
			return launch(j)
		},
	}
	f := cmd.Flags()
	f.VarP(&least, "minbytes", "b", "smallest size, with K, M or G for powers of 1024")
	f.VarP(&most, "maxbytes", "e", "largest size")
	f.VarP(&step, "stepbytes", "i", "add this to the size at each step, in place of -f")
	f.VarP(ranged(&j.factor, 2, 2, 1<<20), "stepfactor", "f", "multiply the size by this at each step")
	f.VarP(ranged(&j.iters, 20, 1, 1<<30), "iters", "n", "timed calls for each size")
	f.VarP(ranged(&j.warmup, 5, 0, 1<<30), "warmup_iters", "w", "calls before them")
	f.VarP(ranged(&check, 1, 0, 1), "check", "c", "1: compare every element with what it must be")
	f.StringVarP(&typ, "datatype", "d", typ, "element type: "+names(elementTypes, func(t elementType) string { return t.name }))
	if op.reduces {
		f.StringVarP(&red, "op", "o", red, "reduction: "+names(reductions, func(r reduction) string { return r.name }))
	}
	if op.rooted {
		f.VarP(ranged(&j.root, 0, 0, mostRanks-1), "root", "r", "root rank")
	}
	f.Var(ranged(&j.ranks, 2, 1, mostRanks), "ranks", "number of ranks")
	f.BoolVar(&j.threads, "threads", false, "ranks are threads of one process, not processes")
	f.Var(ranged(&as, -1, -1, mostRanks-1), "as-rank", "")
	_ = f.MarkHidden("as-rank") // how a rank's process is told who it is
	return cmd
}

// choose fills what follows from the flags, or says which of them cannot be.
func (j *job) choose(typ, red string) error {
	for k := range elementTypes {
		if elementTypes[k].name == typ {
			j.typ = &elementTypes[k]
		}
	}
	if j.typ == nil {
		return fmt.Errorf("-d %s: no such element type; there are %s", typ, names(elementTypes, func(t elementType) string { return t.name }))
	}
	j.red = &moved
	if j.op.reduces {
		j.red = nil
		for k := range reductions {
			if reductions[k].name == red {
				j.red = &reductions[k]
			}
		}
	}
	switch {
	case j.red == nil:
		return fmt.Errorf("-o %s: no such reduction; there are %s", red, names(reductions, func(r reduction) string { return r.name }))
	case j.least > j.most:
		return fmt.Errorf("-b %d is above -e %d: the sweep would be empty", j.least, j.most)
	case j.root >= j.ranks:
		return fmt.Errorf("-r %d: there are %d ranks, so that the root is from 0 to %d", j.root, j.ranks, j.ranks-1)
	}
	return nil
}

func names[T any](list []T, name func(T) string) string {
	var words []string
	for _, t := range list {
		words = append(words, name(t))
	}
	return strings.Join(words, ", ")
}

// size is a number of bytes on the command line.
type size int

func (s *size) String() string { return strconv.Itoa(int(*s)) }
func (s *size) Type() string   { return "bytes" }
func (s *size) Set(text string) error {
	digits, unit := strings.TrimSuffix(strings.ToUpper(text), "B"), 1
	for k, letter := range "KMG" {
		if cut, ok := strings.CutSuffix(digits, string(letter)); ok {
			digits, unit = cut, 1<<(10*(k+1))
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > mostBytes/unit {
		return fmt.Errorf("want a number of bytes up to 64G, such as 8, 512K or 64M")
	}
	*s = size(n * unit)
	return nil
}

// whole is a number within bounds on the command line.
type whole struct {
	at          *int
	least, most int
}

func ranged(at *int, preset, least, most int) *whole {
	*at = preset
	return &whole{at, least, most}
}

func (w *whole) String() string {
	if w.at == nil { // the flag package asks a zero value
		return ""
	}
	return strconv.Itoa(*w.at)
}
func (w *whole) Type() string { return "number" }
func (w *whole) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < w.least || n > w.most {
		return fmt.Errorf("want a whole number from %d to %d", w.least, w.most)
	}
	*w.at = n
	return nil
}
