package main

import (
	"fmt"
	"time"
)

// job is what one run of hccl perf does. All ranks have the same.
type job struct {
	title       string    // the operation's name, or the file of a mix
	subjects    []subject // of a sweep, one after the other
	mix         []entry   // in place of subjects
	probe       *probe    // in place of both
	lib         string
	least, most int // bytes of the larger of a rank's buffers
	step        int
	factor      int // 1: add step
	iters       int
	warmup      int
	fold        int  // calls of a group
	checks      int  // calls that are checked, for each measurement
	combine     int  // how the ranks' times become one: see combined
	aligned     bool // ranks wait for each other before each call
	cpuTime     bool
	registered  bool // memory of ncclMemAlloc
	percentiles bool
	throughput  bool
	seconds     float64 // of a measurement in throughput mode
	limit       float64 // seconds for one measurement; 0 is none
	report      report  // where results go
	ranks       int
	threads     int // of a process
	held        int // ranks of a thread
	world       *world
	meet        meeting
}

const (
	mostRanks = 512     // values.go keeps results exact for so many
	mostBytes = 1 << 36 // of one buffer
)

// perProcess is the number of ranks in a process.
func (j *job) perProcess() int { return j.threads * j.held }

// next is the size after this one in a sweep.
func (j *job) next(bytes int) int {
	if j.factor > 1 {
		return max(bytes*j.factor, bytes+1)
	}
	return bytes + max(j.step, 1)
}

// sizes of a sweep.
func (j *job) sizes() (all []int) {
	for b := j.least; b <= j.most; b = j.next(b) {
		all = append(all, b)
	}
	return all
}

// patient is a watch that ends this process, with a sentence, when one measurement takes longer than the limit.
func (j *job) patient(rank int, what string) *time.Timer {
	if j.limit == 0 {
		return nil
	}
	return time.AfterFunc(time.Duration(j.limit*float64(time.Second)), func() {
		die(fmt.Errorf("rank %d: %s did not end within %g s (-T): a rank is stuck, or the limit is too short", rank, what, j.limit))
	})
}
