package core

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/shm"
)

// placed is ranks by the processor that they wait on, and which of them asks.
type placed struct {
	at   []int
	self int
}

func (p placed) Size() int       { return len(p.at) }
func (p placed) Self() int       { return p.self }
func (p placed) Place(i int) int { return p.at[i] }

func TestLessCrowded(t *testing.T) {
	for _, c := range []struct {
		at    []int
		self  int
		mask  []int
		there int // -1: it stays
	}{
		{[]int{0, 0, 0, 1}, 0, []int{0, 1}, 1},
		{[]int{0, 0, 0, 1}, 1, []int{0, 1}, -1}, // the first one goes
		{[]int{0, 0, 0, 1}, 3, []int{0, 1}, -1},
		{[]int{1, 0, 0, 0}, 1, []int{0, 1}, 1},
		{[]int{0, 0, 1, 1}, 0, []int{0, 1}, -1},
		{[]int{0, 0, 1}, 0, []int{0, 1}, -1}, // it would be as bad there
		{[]int{0, 0, 0, 1}, 0, []int{0}, -1},
		{[]int{0, 0, 0, 1}, 0, []int{0, 1, 5}, 5},
		{[]int{0, 0, -1, -1}, 0, []int{0, 1}, 1}, // the others have not waited yet
		{[]int{2000, 2000, 0, 0}, 0, []int{0, 1}, -1},
		{[]int{5, 5}, 0, []int{0, 1}, 0}, // its thread is on a processor that it may use no more
	} {
		var mask unix.CPUSet
		for _, p := range c.mask {
			mask.Set(p)
		}
		there, ok := lessCrowded(placed{c.at, c.self}, c.at[c.self], &mask)
		if !ok {
			there = -1
		}
		if there != c.there {
			t.Errorf("rank %d of %v, processors %v: %d, want %d", c.self, c.at, c.mask, there, c.there)
		}
	}
}

// twoProcessors are two that the test may use.
func twoProcessors(t *testing.T) (both unix.CPUSet, first, second int) {
	t.Helper()
	var here unix.CPUSet
	if err := unix.SchedGetaffinity(0, &here); err != nil || here.Count() < 2 {
		t.Skipf("%d processors to run on (%v): there is nowhere to move", here.Count(), err)
	}
	first, second = -1, -1
	for p := 0; second < 0; p++ {
		switch {
		case here.IsSet(p) && first < 0:
			first = p
		case here.IsSet(p):
			second = p
		}
	}
	both.Set(first)
	both.Set(second)
	return both, first, second
}

// A thread that moves is where it was told to be, and may go wherever it might before.
func TestMoveTo(t *testing.T) {
	both, first, second := twoProcessors(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the test
		if err := unix.SchedSetaffinity(0, &both); err != nil {
			t.Error(err)
			return
		}
		for _, p := range []int{second, first} {
			arrived := false
			for lim := time.Now().Add(patience); !arrived && time.Now().Before(lim); { // the kernel may move it on before we look
				if !moveTo(p) {
					t.Error("refused")
					return
				}
				arrived = shm.Processor() == p
			}
			var after unix.CPUSet
			if err := unix.SchedGetaffinity(0, &after); err != nil || after != both || !arrived {
				t.Errorf("to %d: arrived %v; it may use %v, want %v (%v)", p, arrived, after, both, err)
			}
		}
	}()
	<-done
}

// Ranks that all wait on one of two processors do not stay there.
func TestRanksSpread(t *testing.T) {
	both, first, _ := twoProcessors(t)
	var one unix.CPUSet
	one.Set(first)
	const n = 4
	w := newWorld(t, n)
	for _, c := range w.comms {
		c.crowded = true
	}
	moved := func(c *Comm) bool {
		c.hot.Lock()
		defer c.hot.Unlock()
		return c.among.moved != 0
	}
	for lim := time.Now().Add(patience); !moved(w.comms[0]); { // the first on a processor moves first
		if time.Now().After(lim) {
			t.Fatal("it has not moved")
		}
		errs := make(chan error, n)
		for r, c := range w.comms {
			go func() {
				runtime.LockOSThread()
				err := unix.SchedSetaffinity(0, &one)
				errs <- errors.Join(err, unix.SchedSetaffinity(0, &both))
				for _, call := range calls(&shape{fn: coll.AllReduce, typ: coll.Float32, n: n, count: 64 << 10, seed: 1}, r) {
					for range 50 {
						err = errors.Join(err, do(c, call))
					}
				}
				errs <- err
			}()
		}
		for range 2 * n {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
	}
	w.destroy()
}

// A rank looks where the others are only where ranks outnumber the processors, and nobody has forbidden it.
func TestWhoLooks(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		for _, may := range []bool{false, true} {
			c := &Comm{crowded: crowded, settings: &params.Values{Spread: may}}
			(&batch{comms: []*Comm{c}}).spread()
			if looks := c.among.looks > 0; looks != (crowded && may) {
				t.Errorf("crowded %v, HCCL_SPREAD %v: looks %v", crowded, may, looks)
			}
		}
	}
}
