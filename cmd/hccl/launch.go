package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// pageFD is where a process of ranks finds the shared page: the first descriptor after the standard three.
const pageFD = 3

const grace = 3 * time.Second // for the other ranks to say what they saw when one has failed

// launch starts the processes of ranks on this machine and waits for them.
func launch(j *job) error {
	_, fd, err := newPage()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	shared := os.NewFile(uintptr(fd), "page")
	count := j.ranks / j.perProcess()
	ended := make(chan ending, count)
	children := make([]*exec.Cmd, 0, count)
	for k := range count {
		c := exec.Command(self, append(os.Args[1:], "--as-process", strconv.Itoa(k))...)
		c.Stdout, c.Stderr, c.ExtraFiles = os.Stdout, os.Stderr, []*os.File{shared}
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no rank outlives this process, however it ends
		if err := c.Start(); err != nil {
			killAll(children)
			return fmt.Errorf("rank %d cannot be started: %w", k*j.perProcess(), err)
		}
		children = append(children, c)
		go func() { ended <- ending{k * j.perProcess(), c.Wait()} }()
	}
	return await(ended, children)
}

// ending is the end of a process, known by its first rank.
type ending struct {
	rank int
	err  error
}

// await returns the first failure. The others then have a moment to end by themselves, since what they say about it is the
// library's answer to a lost rank, and are killed after that.
func await(ended chan ending, children []*exec.Cmd) (first error) {
	var limit <-chan time.Time
	for left := len(children); left > 0; {
		select {
		case e := <-ended:
			left--
			if e.err != nil && first == nil {
				first = e.describe()
				limit = time.After(grace)
			}
		case <-limit:
			killAll(children)
			limit = nil
		}
	}
	return first
}

func (e ending) describe() error {
	var exit *exec.ExitError
	if errors.As(e.err, &exit) && exit.ExitCode() == statusWrong {
		return errWrong
	}
	return fmt.Errorf("rank %d ended with %w", e.rank, e.err)
}

func killAll(children []*exec.Cmd) {
	for _, c := range children {
		_ = c.Process.Kill() // one that has ended is no longer ours to kill: the package knows
	}
}

const statusWrong = 4 // exit status of a process of ranks that saw wrong elements

// runProcess is what a process does that launch has started.
func runProcess(j *job, number int) error {
	p, err := mapPage(pageFD)
	if err != nil {
		return err
	}
	syscall.CloseOnExec(pageFD)
	err = runThreads(j, p, nil, number)
	if errors.Is(err, errWrong) {
		os.Exit(statusWrong)
	}
	return err
}

// runInWorld is what a process does that another launcher has started.
func runInWorld(j *job) error {
	hub, err := j.meet.join(j.world)
	if err != nil {
		return err
	}
	return runThreads(j, new(page), hub, j.world.rank)
}

// runThreads runs the ranks of this process, the number-th: one thread, or several. The first failure ends the process, since the
// others may wait for ever.
func runThreads(j *job, p *page, hub *hub, number int) error {
	if err := j.open(number); err != nil {
		return err
	}
	sharing := j.ranks / j.held // threads at the page's barrier
	if j.world != nil {
		sharing = j.threads
	}
	runtime.GOMAXPROCS(max(j.threads+1, runtime.NumCPU())) // ranks that spin at a barrier must not keep others from a processor of Go's
	ended := make(chan error, j.threads)
	for t := range j.threads {
		r := &runner{job: j, page: p, hub: hub, thread: t, threads: sharing, first: number*j.perProcess() + t*j.held,
			processors: runtime.NumCPU()}
		go func() {
			runtime.LockOSThread()
			// The thread outlives the goroutine: as a locked one ends, the core's runtime gives it back the signal mask of its first
			// call, and a signal then finds this runtime's part of the thread already taken down.
			defer runtime.UnlockOSThread()
			err := r.sweep()
			if err != nil && !errors.Is(err, errWrong) {
				err = fmt.Errorf("rank %d: %w", r.first, err)
			}
			ended <- err
		}()
	}
	var wrong error
	for range j.threads {
		if err := <-ended; errors.Is(err, errWrong) {
			wrong = err
		} else if err != nil {
			return err
		}
	}
	return wrong
}

// open loads the library and looks whether what is asked for can be done.
func (j *job) open(number int) error {
	if _, err := openLibrary(j.lib); err != nil {
		return err
	}
	for k := range j.subjects {
		if err := lacks(j.subjects[k].op); err != nil {
			return err
		}
	}
	for k := range j.mix {
		if err := lacks(j.mix[k].op); err != nil {
			return err
		}
	}
	if number == 0 {
		return j.report.writable()
	}
	return nil
}
