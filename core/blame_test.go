package core

import (
	"errors"
	"slices"
	"testing"
	"time"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/testkit"
)

func wantRanks(t *testing.T, err error, ranks ...int) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || !slices.Equal(e.Ranks, ranks) {
		t.Errorf("%v names %v, wanted %v", err, e, ranks)
	}
}

// An error names for programs whom its text names for people.
func TestErrorsNameRanks(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 3)
		errs := w.each(func(r int) error { return sum(w.comms[r], uint64(10+r/2)) })
		for _, err := range errs {
			var e *Error
			if !errors.As(err, &e) || len(e.Ranks) != 2 || e.Ranks[1] != 2 {
				t.Errorf("ranks that disagree: %v", err)
			}
		}
		w.abort()

		w = newWorld(t, 3)
		w.must(w.each(func(r int) error {
			if r == 1 {
				return w.comms[r].Abort()
			}
			return nil
		}))
		for r, err := range w.each(func(r int) error { return sumUnless(r == 1, w.comms[r]) }) {
			if r != 1 {
				wantRanks(t, err, 1)
			}
		}
		w.abort()
	})
}

// A rank that gave up names whom it missed, so that others, who hear of it before they notice, do not name the messenger.
func TestBlameIsPassedOn(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.must(w.each(func(r int) error {
			var word [1]byte
			call := BarrierCall(device.BytesPtr(word[:]))
			switch r {
			case 0:
				testkit.Eventually(t, patience, "rank 1 to begin", func() bool { _, begun := w.comms[0].seg.Last(1); return begun })
				call.Limit = 400 * time.Millisecond
				wantRanks(t, do(w.comms[r], &call), 2)
				return w.comms[r].Abort()
			case 1:
				call.Limit = 2 * patience
				err := do(w.comms[r], &call)
				wantError(t, err, RemoteError, "rank 0 has given up the communicator after an error because of rank 2 (see its own log)")
				wantRanks(t, err, 2)
			}
			return nil
		}))
		w.abort()
	})
}

func sumUnless(not bool, c *Comm) error {
	if not {
		return nil
	}
	return sum(c, 10)
}

// Who is aborted is told what it was in and for whom it waited.
func TestAbortNamesTheAbsent(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 3)
		done := make(chan error, 1)
		go func() { done <- sum(w.comms[0], 10) }()
		testkit.Eventually(t, patience, "rank 0 to begin", func() bool {
			_, begun := w.comms[0].seg.Last(0)
			return begun
		})
		w.comms[0].Abort()
		var err error
		testkit.Within(t, patience, "the aborted call", func() { err = <-done })
		wantError(t, err, InvalidUsage, "aborted while an operation was under way", "all-reduce", "missing: ranks 1, 2")
		wantRanks(t, err, 1, 2)
		w.abort()
	})
}

// An init that has begun can be aborted by whom it has told of itself.
func TestAbortOfAnInitThatBegan(t *testing.T) {
	s := spec(ids.ID(), 2, 0, true) // rank 1 never comes
	s.Began = func(c *Comm) { go c.Abort() }
	var err error
	testkit.Within(t, patience, "the aborted init", func() { err = Enqueue([]Item{{Init: s}}) })
	wantError(t, err, InvalidUsage, "aborted while it was being made")
}
