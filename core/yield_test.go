package core

import (
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
)

// A yield on a processor on which another thread computes tells so.
func TestGiveWayBesideAComputation(t *testing.T) {
	var here unix.CPUSet
	if err := unix.SchedGetaffinity(0, &here); err != nil {
		t.Skip(err)
	}
	cpu := 0
	for !here.IsSet(cpu) {
		cpu++
	}
	var stop atomic.Bool
	computing, done := make(chan struct{}), make(chan struct{})
	go onProcessor(cpu, func() {
		close(computing)
		for !stop.Load() {
		}
		close(done)
	})
	<-computing
	told := make(chan struct{})
	go onProcessor(cpu, func() {
		for giveWayAside() {
		}
		close(told)
	})
	testkit.Within(t, patience, "a yield that takes as long as a turn", func() { <-told })
	stop.Store(true)
	<-done
	taken.Store(0) // the other tests are as before
}

// onProcessor runs f on a thread of its own, on one processor; the thread ends with it.
func onProcessor(cpu int, f func()) {
	runtime.LockOSThread() // and never unlocked, so that nobody else gets the thread
	var one unix.CPUSet
	one.Set(cpu)
	_ = unix.SchedSetaffinity(0, &one) // without it the test is only easier
	f()
}
