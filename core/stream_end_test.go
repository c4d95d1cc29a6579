package core

import (
	"sync/atomic"
	"testing"

	"hccl.dev/hccl/internal/testkit"
)

// Abort ends what runs and lets go of what is queued, in bounded time; the other communicator of a running group goes on.
func TestAbortWithWorkOnStreams(t *testing.T) {
	overEach(t, func(t *testing.T) {
		v, w := newWorld(t, 2), newWorld(t, 2)
		s, waits := newStream(t), newStream(t)
		x, y, z := adding(2, 3000, 1).part(0), adding(2, 3000, 2).part(0), adding(2, 10, 3).part(0)
		open := gate(waits)
		for _, err := range []error{
			Enqueue([]Item{{Comm: v.comms[0], Call: x.on(s)}, {Comm: w.comms[0], Call: y.on(s)}}), // waits for rank 1
			do(v.comms[0], z.on(waits)),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		testkit.Within(t, leaveTime, "an abort beside a group that waits", func() {
			if err := v.comms[0].Abort(); err != nil {
				t.Error(err)
			}
		})
		other := y.o.part(1)
		if err := do(w.comms[1], &other.call); err != nil {
			t.Error(err)
		}
		wantError(t, s.Synchronize(), InvalidUsage, "abort")
		if err := y.check(); err != nil {
			t.Error(err)
		}
		open()
		wantError(t, waits.Synchronize(), InvalidUsage, "abort")
		v.abort()
		w.destroy()
	})
}

// Destroy waits for what is queued.
func TestDestroyWaitsForStreams(t *testing.T) {
	w := newWorld(t, 2)
	parts := []*part{adding(2, 20000, 1).part(0), adding(2, 20000, 1).part(1)}
	w.must(w.each(func(r int) error {
		s := newStream(t)
		open := gate(s)
		if err := do(w.comms[r], parts[r].on(s)); err != nil {
			return err
		}
		go open()
		return w.comms[r].Destroy()
	}))
	for _, p := range parts {
		if err := p.check(); err != nil {
			t.Error(err)
		}
	}
}

// Who waits for a group that is held up by a stream is let go when its communicators are aborted.
func TestAbortWhileWaitingForStream(t *testing.T) {
	w := newWorld(t, 1)
	c, s := w.comms[0], newStream(t)
	open := gate(s)
	defer open()
	x, y := adding(1, 10, 1).part(0), adding(1, 10, 2).part(0)
	ended := make(chan error)
	go func() { ended <- Enqueue([]Item{{Comm: c, Call: x.on(s)}, {Comm: c, Call: &y.call}}) }()
	testkit.Eventually(t, patience, "the group is queued", func() bool {
		scheduler.mu.Lock()
		defer scheduler.mu.Unlock()
		return len(c.jobs) > 0
	})
	go func() { _ = c.Abort() }()
	testkit.Within(t, patience, "the call", func() { wantError(t, <-ended, InvalidUsage, "aborted") })
}

// Random calls of several threads on shared streams and communicators: all end, each with its own result.
func TestRandomStreams(t *testing.T) {
	const n, rounds = 2, 60
	v, w := newWorld(t, n), newWorld(t, n)
	var wrong atomic.Int32
	w.must(w.each(func(r int) error {
		list := []*Stream{newStream(t), newStream(t), nil}
		seed := uint64(12345) // the same on all ranks: each makes the same calls
		next := func(k uint64) uint64 { seed = seed*6364136223846793005 + 1442695040888963407; return seed >> 33 % k }
		e := FindEvent(NewEvent())
		for k := range uint64(rounds) {
			s := list[next(3)]
			p, q := adding(n, int(next(4000))+1, k).part(r), adding(n, int(next(9))+1, k).part(r)
			items := []Item{{Comm: v.comms[r], Call: p.on(s)}}
			if next(3) == 0 {
				items = append(items, Item{Comm: w.comms[r], Call: q.on(list[next(3)])})
			}
			if err := Enqueue(items); err != nil {
				return err
			}
			if s == nil {
				continue
			}
			s.HostFunc(func() {
				if p.check() != nil {
					wrong.Add(1)
				}
			})
			if next(4) == 0 {
				e.Record(s)
				list[next(2)].WaitEvent(e)
			}
		}
		if err := list[0].Synchronize(); err != nil {
			return err
		}
		return list[1].Synchronize()
	}))
	if wrong.Load() > 0 {
		t.Errorf("%d results are wrong", wrong.Load())
	}
	v.destroy()
	w.destroy()
}
