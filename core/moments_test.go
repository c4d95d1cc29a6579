package core

import (
	"math/rand/v2"
	"testing"
	"time"

	"hccl.dev/hccl/internal/testkit"
)

// One rank aborts at a random moment while three are made: all calls return, those that came through or not, and nothing is left.
func TestAbortAtAnyMomentOfInit(t *testing.T) {
	rounds := 15
	if testing.Short() {
		rounds = 10
	}
	overEach(t, func(t *testing.T) {
		newWorld(t, 3).destroy()
		before := testkit.Count()
		for k := range rounds {
			const n = 3
			id, w, moment := ids.ID(), &world{t: t, comms: make([]*Comm, n)}, time.Duration(rand.IntN(6000))*time.Microsecond
			specs := [n]*InitSpec{}
			for r := range specs {
				specs[r] = spec(id, n, r, k%2 == 0)
			}
			aborted := make(chan struct{})
			go func() {
				defer close(aborted)
				<-time.After(moment)
				if c := Find(specs[k%n].ID); c != nil {
					_ = c.Abort()
				}
			}()
			errs := w.each(func(r int) error {
				err := Enqueue([]Item{{Init: specs[r]}})
				w.comms[r] = Find(specs[r].ID)
				if c := w.comms[r]; c != nil && ResultOf(err) == InProgress {
					err = idle(c)
				}
				return err
			})
			<-aborted
			for r, err := range errs {
				if ResultOf(err) == InternalError {
					t.Errorf("aborted after %v: rank %d: %v", moment, r, err)
				}
			}
			w.abort()
		}
		if err := before.Balanced(5 * time.Second); err != nil {
			t.Error(err)
		}
	})
}

// The same in the middle of operations and splits of blocking ranks that are used by several threads.
func TestAbortAtAnyMomentOfUse(t *testing.T) {
	rounds := 15
	if testing.Short() {
		rounds = 8
	}
	overEach(t, func(t *testing.T) {
		newWorld(t, 3).destroy()
		before := testkit.Count()
		for k := range rounds {
			w := newWorld(t, 3)
			moment := time.Duration(rand.IntN(4000)) * time.Microsecond
			aborted := make(chan struct{})
			go func() {
				defer close(aborted)
				<-time.After(moment)
				_ = w.comms[k%3].Abort()
			}()
			errs := w.each(func(r int) error {
				for {
					for _, count := range []uint64{10, 3000, 90000} {
						if err := sum(w.comms[r], count); err != nil {
							return err
						}
					}
					child, err := splitOff(w.comms[r], 0, int32(r))
					if err != nil {
						return err
					}
					if err := child.Destroy(); err != nil {
						return err
					}
				}
			})
			<-aborted
			for r, err := range errs {
				if ResultOf(err) == InternalError {
					t.Errorf("aborted after %v: rank %d: %v", moment, r, err)
				}
			}
			w.abort()
		}
		if err := before.Balanced(5 * time.Second); err != nil {
			t.Error(err)
		}
	})
}
