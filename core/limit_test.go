package core

import (
	"bytes"
	"testing"
	"time"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
)

// A barrier holds everyone until the last has come, on one communicator again and again.
func TestBarrier(t *testing.T) {
	overEach(t, func(t *testing.T) {
		const n = 3
		w := newWorld(t, n)
		for range 5 {
			var word [1]byte
			come := make(chan struct{}, n)
			w.must(w.each(func(r int) error {
				come <- struct{}{}
				call := BarrierCall(device.BytesPtr(word[:]))
				if err := do(w.comms[r], &call); err != nil {
					return err
				}
				if len(come) != n {
					t.Errorf("rank %d went on with %d of %d there", r, len(come), n)
				}
				return nil
			}))
		}
		w.destroy()
	})
}

// A call's own limit ends it and names those who have not come; others, whose limit is longer, wait until that rank aborts.
func TestLimitOfCall(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.must(w.each(func(r int) error {
			var word [1]byte
			call := BarrierCall(device.BytesPtr(word[:]))
			switch r {
			case 0:
				testkit.Eventually(t, patience, "rank 1 to begin", func() bool { _, begun := w.comms[0].seg.Last(1); return begun })
				call.Limit = 400 * time.Millisecond
				wantError(t, do(w.comms[r], &call), Timeout, "rank 0 gave up", "a barrier", "missing: ranks 2, 3")
				return w.comms[r].Abort()
			case 1:
				call.Limit = 2 * patience
				wantError(t, do(w.comms[r], &call), RemoteError, "rank 0 has given up the communicator after an error because of rank 2 and others")
			}
			return nil
		}))
		w.abort()
	})
}

// The communicator's limit can be set at any time and acts on what waits already; a call may be without one.
func TestLimitOfCommunicator(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c := w.comms[0]
		if c.Limit() != 0 {
			t.Errorf("limit %v without a setting", c.Limit())
		}
		c.SetLimit(50 * time.Millisecond)
		w.must(w.each(func(r int) error { // longer than the communicator's limit, which a call's own stands in for
			p := adding(2, 10, 1).part(r)
			p.call.Limit = NoLimit
			if r == 1 {
				from := time.Now() // the standstill that is tried
				testkit.Eventually(t, patience, "rank 0 waits", func() bool { return time.Since(from) > 300*time.Millisecond })
			}
			return do(w.comms[r], &p.call)
		}))
		c.SetLimit(0)
		done := make(chan error)
		go func() {
			p := adding(2, 10, 2).part(0)
			done <- do(c, &p.call)
		}()
		testkit.Eventually(t, patience, "rank 0 is in the operation", func() bool { return waits(c) == coll.AllReduce })
		c.SetLimit(time.Millisecond)
		wantError(t, <-done, Timeout, "rank 0 gave up", "missing: rank 1")
		w.abort()
	})
}

// waits is the function that a communicator has begun last.
func waits(c *Comm) coll.Func {
	if last, ok := c.seg.Last(c.rank); ok && last.Seq > 1 {
		return last.Func
	}
	return coll.NumFuncs
}

// In a group the shortest limit holds for all of it.
func TestLimitOfGroup(t *testing.T) {
	w := newWorld(t, 2)
	a, b := adding(2, 100, 1).part(0), adding(2, 100000, 2).part(0)
	a.call.Limit, b.call.Limit = time.Hour, 100*time.Millisecond
	items := []Item{{Comm: w.comms[0], Call: &a.call}, {Comm: w.comms[0], Call: &b.call}}
	w.must(w.each(func(r int) error {
		if r == 0 {
			wantError(t, Enqueue(items), Timeout, "missing: rank 1")
		}
		return nil
	}))
	w.abort()
}

// A rank that sent what was wanted and left is not blamed, though who waited has not looked since.
func TestBlameLooksAgain(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		c, b := w.comms[0], pinned(make([]byte, 20))
		in := letterCall(coll.Recv, b, 1)
		c.hot.Lock()
		if err := c.add(&in); err != nil {
			t.Fatal(err)
		}
		out := letterCall(coll.Send, pinned(letter(1, 20)), 0)
		if err := do(w.comms[1], &out); err != nil {
			t.Fatal(err)
		}
		if err := w.comms[1].Destroy(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, patience, "the end of rank 1 is known", func() bool { return c.farewell(1) != "" })
		c.anyGone.Store(true)
		c.turn.news = time.Now().Add(-time.Second) // of some other rank's end
		c.solo.since = c.turn.news
		c.solo.ponder()
		err := c.solo.drive()
		c.hot.Unlock()
		if err != nil || !bytes.Equal(b, letter(1, 20)) {
			t.Errorf("received % x: %v", b, err)
		}
		if err := c.Destroy(); err != nil {
			t.Error(err)
		}
	})
}
