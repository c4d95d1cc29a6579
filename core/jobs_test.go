package core

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
)

// idle waits until a non-blocking communicator has nothing to do, and returns its fault.
func idle(c *Comm) (err error) {
	for end := time.Now().Add(patience / 2); ; <-time.After(100 * time.Microsecond) {
		if err = c.AsyncError(); ResultOf(err) != InProgress {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("rank %d is still in progress", c.rank)
		}
	}
}

// newQueued makes a world of non-blocking ranks.
func newQueued(t testing.TB, n int) *world {
	t.Helper()
	id := ids.ID()
	w := &world{t: t, comms: make([]*Comm, n)}
	w.must(w.each(func(r int) error {
		s := spec(id, n, r, false)
		if err := Enqueue([]Item{{Init: s}}); ResultOf(err) != InProgress {
			return fmt.Errorf("a non-blocking init: %w", err)
		}
		w.comms[r] = Find(s.ID)
		return idle(w.comms[r])
	}))
	return w
}

// started passes on everything but the answer that a call was only started.
func started(err error) error {
	switch ResultOf(err) {
	case InProgress:
		return nil
	case Success:
		return fmt.Errorf("a non-blocking call returned success at once")
	}
	return err
}

// Jobs run in call order, whatever is asked for: each all-reduce goes on from the result of the one before.
func TestJobsRunInOrder(t *testing.T) {
	overEach(t, func(t *testing.T) {
		const n, rounds = 3, 8
		w := newQueued(t, n)
		w.must(w.each(func(r int) error {
			o := &shape{fn: coll.AllReduce, typ: coll.Int64, n: n, count: 3000, seed: 1, inPlace: true}
			p := o.part(r)
			for range rounds {
				if err := started(do(w.comms[r], &p.call)); err != nil {
					return err
				}
			}
			if err := started(w.comms[r].Finalize()); err != nil {
				return err
			}
			if err := idle(w.comms[r]); err != nil {
				return err
			}
			for range rounds - 1 { // the sum of n equal vectors
				for i := range o.count {
					v := loadInt(p, i)
					if v%n != 0 {
						return fmt.Errorf("element %d is %d", i, v)
					}
					o.store(p.mem[p.recvAt:], i, v/n)
				}
			}
			return p.check()
		}))
		w.destroy()
	})
}

func loadInt(p *part, i uint64) (v int64) {
	at := p.recvAt + 8*i
	for k := range uint64(8) {
		v |= int64(p.mem[at+k]) << (8 * k)
	}
	return v
}

// One group of calls on two non-blocking communicators waits until it is first on both.
func TestJobsOfSeveralCommunicators(t *testing.T) {
	overEach(t, func(t *testing.T) {
		const n = 2
		a, b := newQueued(t, n), newQueued(t, n)
		a.must(a.each(func(r int) error {
			var parts []*part
			for k := range 6 {
				x := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: n, count: 2000, seed: uint64(k)}).part(r)
				y := (&shape{fn: coll.AllGather, typ: coll.Int32, n: n, count: 200, seed: uint64(k)}).part(r)
				parts = append(parts, x, y)
				items := []Item{{Comm: a.comms[r], Call: &x.call}, {Comm: b.comms[r], Call: &y.call}}
				if k%3 == 1 {
					z := (&shape{fn: coll.Broadcast, typ: coll.Int32, n: n, count: 10, seed: 9}).part(r)
					parts = append(parts, z)
					if err := started(do(b.comms[r], &z.call)); err != nil {
						return err
					}
				}
				if err := started(Enqueue(items)); err != nil {
					return err
				}
			}
			for _, c := range []*Comm{a.comms[r], b.comms[r]} {
				if err := idle(c); err != nil {
					return err
				}
			}
			for _, p := range parts {
				if err := p.check(); err != nil {
					return err
				}
			}
			return nil
		}))
		a.destroy()
		b.destroy()
	})
}

// A communicator is aborted while its job is queued behind another's that waits: the end does not wait for that, and the other
// communicator's part of the job still runs.
func TestAbortWhileQueued(t *testing.T) {
	const n = 2
	a, b := newQueued(t, n), newQueued(t, n)
	x := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: n, count: 10, seed: 1}).part(0)
	y := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: n, count: 20, seed: 2}).part(0)
	z := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: n, count: 30, seed: 3}).part(0)
	for _, err := range []error{do(b.comms[0], &x.call), // waits for rank 1
		Enqueue([]Item{{Comm: a.comms[0], Call: &y.call}, {Comm: b.comms[0], Call: &z.call}})} {
		if err := started(err); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Within(t, leaveTime, "the abort of a communicator whose job is queued", func() {
		if err := a.comms[0].Abort(); err != nil {
			t.Error(err)
		}
	})
	for k, o := range []*shape{x.o, z.o} {
		p := o.part(1)
		if err := started(do(b.comms[1], &p.call)); err != nil {
			t.Fatal(err)
		}
		if err := idle(b.comms[1]); err != nil {
			t.Fatalf("operation %d of the other communicator: %v", k, err)
		}
		if err := p.check(); err != nil {
			t.Error(err)
		}
	}
	if err := idle(b.comms[0]); err != nil {
		t.Error(err)
	}
	for _, p := range []*part{x, z} {
		if err := p.check(); err != nil {
			t.Error(err)
		}
	}
	a.abort()
	b.destroy()
}

// A call that is refused after it was queued becomes the communicator's error; its neighbour in the group stays sound.
func TestQueuedErrorIsOfItsCommunicator(t *testing.T) {
	a, b := newQueued(t, 1), newQueued(t, 1)
	p := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: 1, count: 10, seed: 1}).part(0)
	bad := p.call
	bad.Recv = 0
	if err := started(Enqueue([]Item{{Comm: a.comms[0], Call: &bad}, {Comm: b.comms[0], Call: &p.call}})); err != nil {
		t.Fatal(err)
	}
	wantError(t, idle(a.comms[0]), InvalidArgument, "receive buffer is NULL")
	if err := idle(b.comms[0]); err != nil {
		t.Error(err)
	}
	if err := p.check(); err != nil {
		t.Error(err)
	}
	a.abort()
	b.destroy()
}

// The queue by itself: jobs of one communicator never overlap and keep their order, and a job of several is first on all.
func TestSchedule(t *testing.T) {
	comms := []*Comm{{}, {}, {}}
	var mu sync.Mutex
	var order [3][]int
	running := map[*Comm]int{}
	var all sync.WaitGroup
	var wanted [3][]int
	for k := range 300 {
		of := []int{k % 3}
		if k%4 == 0 {
			of = append(of, (k/3+1)%3)
			if of[0] == of[1] {
				of = of[:1]
			}
		}
		j := &job{}
		for _, i := range of {
			j.comms = append(j.comms, comms[i])
			wanted[i] = append(wanted[i], k)
		}
		all.Add(1)
		j.run = func() {
			defer all.Done()
			mu.Lock()
			for _, i := range of {
				order[i] = append(order[i], k)
				if running[comms[i]]++; running[comms[i]] > 1 {
					t.Errorf("two jobs of communicator %d at once", i)
				}
			}
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
			for _, i := range of {
				running[comms[i]]--
			}
			mu.Unlock()
		}
		schedule(j)
	}
	testkit.Within(t, patience, "all jobs", func() {
		all.Wait()
		for _, c := range comms {
			c.drain()
		}
	})
	for i := range comms {
		if fmt.Sprint(order[i]) != fmt.Sprint(wanted[i]) {
			t.Errorf("communicator %d: %v", i, order[i])
		}
		if comms[i].busy() {
			t.Errorf("communicator %d is busy", i)
		}
	}
}
