package tcp

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestBatonForgetsNothing has several threads announce work and checks that whoever holds the baton does all of it.
func TestBatonForgetsNothing(t *testing.T) {
	const threads, turns = 4, 20_000
	var b baton
	var wait sync.WaitGroup
	var queued [threads]struct { // each written by one thread
		n chan struct{}
	}
	for i := range queued {
		queued[i].n = make(chan struct{}, turns)
	}
	done := 0 // guarded by b
	work := func() {
		for i := range queued {
			for len(queued[i].n) > 0 {
				<-queued[i].n
				done++
			}
		}
	}
	for i := range threads {
		wait.Go(func() {
			for range turns {
				queued[i].n <- struct{}{}
				if b.take() {
					for more := true; more; more = !b.pass() {
						work()
					}
				}
			}
		})
	}
	wait.Wait()
	b.close()
	if done != threads*turns {
		t.Errorf("%d of %d pieces of work were done", done, threads*turns)
	}
	if b.take() {
		t.Error("a closed baton was taken")
	}
}

// TestCollectorStopsWhoWaitsForABaton runs in a process as the core's is: without asynchronous preemption.
func TestCollectorStopsWhoWaitsForABaton(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=collect", "GODEBUG=asyncpreemptoff=1")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(hang, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the collector waits for a thread that waits for a baton: %v", err)
	}
}

func collect() {
	var b baton
	b.take()
	waits := make(chan struct{})
	done := make(chan struct{})
	go func() {
		close(waits)
		b.close()
		close(done)
	}()
	<-waits
	for range 20 {
		runtime.GC()
	}
	b.pass()
	<-done
}
