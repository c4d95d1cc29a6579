package core

import (
	"fmt"
	"testing"
	"time"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
)

// awaitFailure asks for a communicator's state until it is a fault.
func awaitFailure(c *Comm) error {
	for end := time.Now().Add(patience / 2); time.Now().Before(end); <-time.After(time.Millisecond) {
		if err := c.AsyncError(); err != nil && ResultOf(err) != InProgress {
			return err
		}
	}
	return fmt.Errorf("rank %d is still sound", c.rank)
}

// sum is a small all-reduce, or a large one.
func sum(c *Comm, count uint64) error {
	p := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: c.n, count: count, seed: 1}).part(c.rank)
	if err := do(c, &p.call); err != nil {
		return err
	}
	return p.check()
}

// A rank that destroys or aborts its communicator is named by those who wait for it. What it gave before still arrives.
func TestRankLeaves(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, how := range []string{"destroyed", "aborted"} {
			for _, count := range []uint64{10, 200000} {
				w := newWorld(t, 3)
				errs := w.each(func(r int) error {
					if err := sum(w.comms[r], count); err != nil {
						return fmt.Errorf("before it: %w", err)
					}
					switch {
					case r != 1:
						return sum(w.comms[r], count)
					case how == "aborted":
						return w.comms[r].Abort()
					}
					return w.comms[r].Destroy()
				})
				for r, err := range errs {
					if r != 1 {
						wantError(t, err, RemoteError, "rank 1 has", how, "waits for it in operation 2, all-reduce")
					} else if err != nil {
						t.Error(err)
					}
				}
				w.abort()
			}
		}
	})
}

// A message that was sent before its sender left can still be received; a receive from one that has left fails and names it.
func TestSenderLeaves(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 3)
		gone := make(chan struct{})
		out, in := letter(0, 5000), make([]byte, 5000)
		errs := w.each(func(r int) error {
			c := w.comms[r]
			switch r {
			case 0:
				defer close(gone)
				s := letterCall(coll.Send, out, 1)
				if err := do(c, &s); err != nil {
					return err
				}
				return c.Destroy()
			case 1:
				<-gone
				m := letterCall(coll.Recv, in, 0)
				if err := do(c, &m); err != nil {
					return fmt.Errorf("the message that was sent: %w", err)
				}
				return do(c, &m)
			}
			// another line waits first, for a rank that is there
			a, b := letterCall(coll.Recv, make([]byte, 10), 0), letterCall(coll.Recv, make([]byte, 10), 1)
			return Enqueue([]Item{{Comm: c, Call: &b}, {Comm: c, Call: &a}})
		})
		if errs[0] != nil {
			t.Error(errs[0])
		}
		wantError(t, errs[1], RemoteError, "rank 0 has left")
		wantError(t, errs[2], RemoteError, "rank 0 has left")
		w.abort()
	})
}

// Abort from another thread ends a wait in every kind of operation, and at the lock.
func TestAbortEndsWaits(t *testing.T) {
	waits := map[string]func(c *Comm) error{
		"mail":    func(c *Comm) error { return sum(c, 10) },
		"plan":    func(c *Comm) error { return sum(c, 500000) },
		"message": func(c *Comm) error { m := letterCall(coll.Recv, make([]byte, 10), 1); return do(c, &m) },
		"announced message": func(c *Comm) error {
			m := letterCall(coll.Send, make([]byte, 100000), 1)
			return do(c, &m)
		},
		"group": func(c *Comm) error {
			x := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: 2, count: 10, seed: 1}).part(c.rank)
			m := letterCall(coll.Recv, make([]byte, 10), 1)
			return Enqueue([]Item{{Comm: c, Call: &x.call}, {Comm: c, Call: &m}})
		},
		"split": func(c *Comm) error {
			return Enqueue([]Item{{Comm: c, Split: &SplitSpec{ID: nextID(), Handle: &handle{}, Blocking: true}}})
		},
	}
	overEach(t, func(t *testing.T) {
		for name, wait := range waits {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, 2)
				c := w.comms[0]
				const threads = 3 // one waits in the operation, the others for the lock
				errs := make(chan error, threads)
				for range threads {
					go func() { errs <- wait(c) }()
				}
				testkit.Eventually(t, patience, "all threads inside", func() bool { return c.inside.Load() >= threads })
				start := time.Now()
				if err := c.Abort(); err != nil {
					t.Error(err)
				}
				if d := time.Since(start); d >= leaveTime {
					t.Errorf("the abort took %v: it gave up", d)
				}
				for range threads {
					wantError(t, <-errs, InvalidUsage, "abort")
				}
				err := sum(w.comms[1], 10)
				if err == nil { // rank 0 had given its part of the first
					err = sum(w.comms[1], 10)
				}
				if name != "split" { // which is another operation
					wantError(t, err, RemoteError, "rank 0 has aborted")
				}
				w.abort()
			})
		}
	})
}

// In a group of two communicators, the end of one that is aborted does not wait for the other.
func TestAbortOneOfAGroup(t *testing.T) {
	overEach(t, func(t *testing.T) {
		a, b := newWorld(t, 2), newWorld(t, 2)
		done := make(chan error, 1)
		x := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: 2, count: 10, seed: 1}).part(0)
		y := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: 2, count: 10, seed: 1}).part(0)
		items := []Item{{Comm: a.comms[0], Call: &x.call}, {Comm: b.comms[0], Call: &y.call}}
		go func() { done <- Enqueue(items) }()
		testkit.Eventually(t, patience, "the group to begin", func() bool { return b.comms[0].inside.Load() > 0 })
		start := time.Now()
		if err := a.comms[0].Abort(); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d >= leaveTime {
			t.Errorf("the abort took %v: it gave up", d)
		}
		if err := sum(b.comms[1], 10); err != nil {
			t.Errorf("the other communicator: %v", err)
		}
		wantError(t, <-done, InvalidUsage, "aborted")
		if items[1].Err != nil {
			t.Errorf("the item of the other communicator: %v", items[1].Err)
		}
		if err := y.check(); err != nil {
			t.Error(err)
		}
		a.abort()
		b.destroy()
	})
}

// Communicators end in any order, each rank in its own.
func TestDestroyInAnyOrder(t *testing.T) {
	overEach(t, func(t *testing.T) {
		const n, each = 3, 4
		var worlds []*world
		for range each {
			worlds = append(worlds, newWorld(t, n))
		}
		worlds[0].must(worlds[0].each(func(r int) error {
			for k := range each {
				if err := sum(worlds[k].comms[r], 1000); err != nil {
					return err
				}
			}
			for k := range each {
				if err := worlds[(k+r)%each].comms[r].Destroy(); err != nil {
					return err
				}
			}
			return nil
		}))
	})
}

// HCCL_TIMEOUT ends an operation and names who has not come. Over TCP those who wait tell of themselves after 0.2 s only.
func TestTimeoutNamesTheAbsent(t *testing.T) {
	testkit.Setenv(t, "HCCL_TIMEOUT", "1.5")
	overEach(t, func(t *testing.T) {
		for _, count := range []uint64{10, 200000} {
			w := newWorld(t, 3)
			for r, err := range w.each(func(r int) error {
				if r == 2 {
					return nil
				}
				return sum(w.comms[r], count)
			}) {
				if r != 2 {
					wantError(t, err, Timeout, rankName(r)+" gave up", "operation 1, all-reduce", "missing: rank 2")
				}
			}
			w.abort()
		}
		w := newWorld(t, 2)
		m := letterCall(coll.Recv, make([]byte, 9), 1)
		wantError(t, do(w.comms[0], &m), Timeout, "recv of 9 elements", "waiting for rank 1")
		w.abort()
	})
}

// HCCL_INIT_TIMEOUT ends an init and names who has not come.
func TestInitTimeoutNamesTheAbsent(t *testing.T) {
	testkit.Setenv(t, "HCCL_INIT_TIMEOUT", "0.5")
	w, id := &world{t: t, comms: make([]*Comm, 2)}, ids.ID()
	for r, err := range w.each(func(r int) error { _, err := initRank(spec(id, 4, r, true)); return err }) {
		t.Logf("rank %d: %v", r, err)
		wantError(t, err, Timeout, "2, 3")
	}
}

// Abort ends an init that waits for ranks, and the call says so; blocking or not.
func TestAbortEndsInit(t *testing.T) {
	for _, blocking := range []bool{true, false} {
		s := spec(ids.ID(), 2, 0, blocking)
		done := make(chan error, 1)
		go func() { done <- Enqueue([]Item{{Init: s}}) }()
		testkit.Eventually(t, patience, "the communicator to be known", func() bool { return Find(s.ID) != nil })
		c := Find(s.ID)
		if !blocking {
			wantError(t, <-done, InProgress)
			wantError(t, c.AsyncError(), InProgress)
		}
		testkit.Within(t, patience, "abort", func() {
			if err := c.Abort(); err != nil {
				t.Error(err)
			}
		})
		if blocking {
			wantError(t, <-done, InvalidUsage, "aborted while it was being made")
		}
		if Find(s.ID) != nil {
			t.Error("it is still known")
		}
	}
}
