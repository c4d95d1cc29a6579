package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// settle fills what follows from the flags and the environment, or says which of them cannot be.
func (a *asked) settle(f *pflag.FlagSet, w *world, trouble error) error {
	j := &a.job
	if a.graph != 0 {
		return errors.New("-G: host memory has no CUDA graphs; leave it out, or give 0")
	}
	if a.op == nil && j.throughput {
		return errors.New("--throughput is for one operation; a --mix runs -n times")
	}
	j.aligned, j.cpuTime, j.registered = a.separate == 1, a.cpu == 1, a.libraryMem > 0
	a.settleSizes(f)
	if err := a.settleRanks(f, w, trouble); err != nil {
		return err
	}
	if j.least > j.most {
		return fmt.Errorf("-b %d is above -e %d: the sweep would be empty", j.least, j.most)
	}
	if err := a.settleSubjects(); err != nil {
		return err
	}
	return j.fits(memoryLeft())
}

func (a *asked) settleSizes(f *pflag.FlagSet) {
	j := &a.job
	if j.throughput {
		preset(f, "minbytes", "4K")
		preset(f, "maxbytes", "64M")
		preset(f, "stepfactor", "4")
	}
	if f.Changed("stepbytes") && !f.Changed("stepfactor") {
		j.factor = 1
	}
	if f.Changed("minbytes") && !f.Changed("maxbytes") {
		a.most = max(a.most, a.least)
	}
	j.least, j.most, j.step = int(a.least), int(a.most), int(a.step)
}

// preset changes the default of a flag that was not given.
func preset(f *pflag.FlagSet, name, value string) {
	if flag := f.Lookup(name); !flag.Changed {
		_ = flag.Value.Set(value)
	}
}

// settleRanks says how many ranks there are and who holds them. --ranks and --threads mean this machine alone; else what started
// this process counts.
func (a *asked) settleRanks(f *pflag.FlagSet, w *world, trouble error) error {
	j := &a.job
	j.ranks = a.asRanks
	local := a.asThreads || a.asRanks > 0 || a.as >= 0
	if !local && trouble != nil {
		return trouble
	}
	grouped := f.Changed("nthreads") || f.Changed("ngpus")
	switch {
	case !local && w != nil:
		j.world, j.ranks = w, w.size*j.perProcess()
	case j.ranks == 0 && grouped:
		j.ranks = j.perProcess()
	case j.ranks == 0:
		j.ranks = 2
	}
	if a.asThreads {
		j.threads = max(j.ranks/j.held, 1)
	}
	switch per := j.perProcess(); {
	case j.ranks > mostRanks:
		return fmt.Errorf("%d ranks: there may be %d", j.ranks, mostRanks)
	case j.ranks%per != 0:
		return fmt.Errorf("--ranks %d cannot be divided into processes of %d ranks (-t %d, -g %d)", j.ranks, per, j.threads, j.held)
	}
	return nil
}

func (a *asked) settleSubjects() (err error) {
	j := &a.job
	if a.op == nil {
		j.title = a.mixFile
		j.mix, err = readMix(a.mixFile, j.ranks)
		for k, e := range j.mix {
			if k == 0 {
				j.least, j.most = e.bytes, e.bytes
			}
			j.least, j.most = min(j.least, e.bytes), max(j.most, e.bytes)
		}
		return err
	}
	j.title = a.op.name
	j.subjects, err = subjects(a.op, a.typ, a.red, a.root, j.ranks)
	return err
}
