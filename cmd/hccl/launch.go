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

// errWrong is the end of a sweep with wrong elements: the table has said how many.
var errWrong = errors.New("data were wrong: see the column #wrong")

// pageFD is where a rank's process finds the shared page: the first descriptor after the standard three.
const pageFD = 3

const grace = 3 * time.Second // for the other ranks to say what they saw when one has failed

// launch starts the ranks and waits for them.
func launch(j *job) error {
	if j.threads {
		return runThreads(j)
	}
	_, fd, err := newPage()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	shared := os.NewFile(uintptr(fd), "page")
	ended := make(chan ending, j.ranks)
	children := make([]*exec.Cmd, 0, j.ranks)
	for r := range j.ranks {
		c := exec.Command(self, append(os.Args[1:], "--as-rank", strconv.Itoa(r))...)
		c.Stdout, c.Stderr, c.ExtraFiles = os.Stdout, os.Stderr, []*os.File{shared}
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no rank outlives this process, however it ends
		if err := c.Start(); err != nil {
			killAll(children)
			return fmt.Errorf("rank %d cannot be started: %w", r, err)
		}
		children = append(children, c)
		go func() { ended <- ending{r, c.Wait()} }()
	}
	return await(ended, children)
}

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

const statusWrong = 4 // exit status of a rank's process that saw wrong elements

// runRankProcess is what a rank's process does.
func runRankProcess(j *job, rank int) error {
	p, err := mapPage(pageFD)
	if err != nil {
		return err
	}
	syscall.CloseOnExec(pageFD)
	if _, err := openLibrary(j.lib); err != nil {
		return err
	}
	err = (&runner{job: j, page: p, rank: rank, processors: runtime.NumCPU()}).sweep()
	if errors.Is(err, errWrong) {
		os.Exit(statusWrong)
	}
	if err != nil {
		return fmt.Errorf("rank %d: %w", rank, err)
	}
	return nil
}

// runThreads runs the ranks as threads of this process; the first failure ends the process, since the others may wait for ever.
func runThreads(j *job) error {
	if _, err := openLibrary(j.lib); err != nil {
		return err
	}
	runtime.GOMAXPROCS(j.ranks + 1) // ranks that spin at a barrier must not keep others from a processor of Go's
	p := new(page)
	ended := make(chan error, j.ranks)
	for r := range j.ranks {
		go func() {
			runtime.LockOSThread()
			err := (&runner{job: j, page: p, rank: r, processors: runtime.NumCPU()}).sweep()
			if err != nil && !errors.Is(err, errWrong) {
				err = fmt.Errorf("rank %d: %w", r, err)
			}
			ended <- err
		}()
	}
	var wrong error
	for range j.ranks {
		if err := <-ended; errors.Is(err, errWrong) {
			wrong = err
		} else if err != nil {
			return err
		}
	}
	return wrong
}
