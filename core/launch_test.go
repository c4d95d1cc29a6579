package core

import (
	"fmt"
	"testing"
)

// What a group returns while it is held up by its stream: success where all its calls are on streams, "in progress" where a
// non-blocking communicator has one on NULL as well.
func TestAnswerOfGroup(t *testing.T) {
	w, q := newWorld(t, 2), newQueued(t, 2)
	w.must(w.each(func(r int) error {
		s := newStream(t)
		open := gate(s)
		defer open()
		x, y, z := adding(2, 10, 1).part(r), adding(2, 10, 2).part(r), adding(2, 10, 3).part(r)
		if err := Enqueue([]Item{{Comm: w.comms[r], Call: x.on(s)}, {Comm: q.comms[r], Call: y.on(s)}}); err != nil {
			return fmt.Errorf("a group on a stream: %w", err)
		}
		if err := q.comms[r].AsyncError(); err != nil {
			return fmt.Errorf("a communicator with calls on a stream: %w", err)
		}
		held.Store(z, nil)
		err := started(Enqueue([]Item{{Comm: w.comms[r], Call: x.on(s)}, {Comm: q.comms[r], Call: &z.call}}))
		if err != nil {
			return fmt.Errorf("a group with a call on NULL: %w", err)
		}
		if err := q.comms[r].AsyncError(); ResultOf(err) != InProgress {
			return fmt.Errorf("a non-blocking communicator with a call on NULL says %v", err)
		}
		open()
		if err := idle(q.comms[r]); err != nil {
			return err
		}
		if err := s.Synchronize(); err != nil {
			return err
		}
		for _, p := range []*part{x, y, z} {
			if err := p.check(); err != nil {
				return err
			}
		}
		return nil
	}))
	w.destroy()
	q.destroy()
}

// A group that splits one communicator and has a call of another on a stream returns with the child.
func TestSplitInGroupWithStream(t *testing.T) {
	overEach(t, func(t *testing.T) {
		v, w := newWorld(t, 2), newWorld(t, 2)
		w.must(w.each(func(r int) error {
			s := newStream(t)
			x, y := adding(2, 1000, 1).part(r), adding(2, 1000, 2).part(r)
			child := nextID()
			split := &SplitSpec{ID: child, Handle: &handle{}, Blocking: true}
			if err := Enqueue([]Item{{Comm: v.comms[r], Split: split}, {Comm: w.comms[r], Call: x.on(s)}}); err != nil {
				return err
			}
			if err := x.check(); err != nil {
				return fmt.Errorf("the group returned before all of it was done: %w", err)
			}
			if err := do(Find(child), y.on(s)); err != nil {
				return err
			}
			if err := s.Synchronize(); err != nil {
				return err
			}
			if err := y.check(); err != nil {
				return err
			}
			return Find(child).Destroy()
		}))
		v.destroy()
		w.destroy()
	})
}
