package core

import (
	"errors"
	"fmt"
	"testing"

	"hccl.dev/hccl/internal/coll"
)

// splitOff divides a rank's communicator and returns the child, nil for NoColor.
func splitOff(c *Comm, color, key int32) (*Comm, error) {
	s := &SplitSpec{ID: nextID(), Color: color, Key: key, Blocking: true, Name: "child"}
	if color != NoColor {
		s.Handle = &handle{}
	}
	if err := Enqueue([]Item{{Comm: c, Split: s}}); err != nil || color == NoColor {
		return nil, err
	}
	return Find(s.ID), nil
}

// tryAll runs one operation of each function on this rank, and ends in any case.
func tryAll(c *Comm, seed uint64) error {
	for k, fn := range collectives {
		p := (&shape{fn: fn, typ: coll.Int32, n: c.n, count: 900, root: k % c.n, seed: seed}).part(c.rank)
		if err := do(c, &p.call); err != nil {
			return err
		}
		if err := p.check(); err != nil {
			return err
		}
	}
	return nil
}

// Splits of splits by colour and reversed keys, some ranks left out; parents and children are used side by side and end in any order.
func TestSplitsOfSplits(t *testing.T) {
	overEach(t, func(t *testing.T) {
		const n = 5
		w := newWorld(t, n)
		w.must(w.each(func(r int) error {
			c := w.comms[r]
			color := int32(r % 2)
			if r == 4 {
				color = NoColor
			}
			child, err := splitOff(c, color, int32(-r))
			if err != nil || child == nil {
				return errors.Join(err, tryAll(c, 1))
			}
			if child.n != 2 || child.rank != 1-r/2 {
				return fmt.Errorf("rank %d became rank %d of %d", r, child.rank, child.n)
			}
			grandchild, err := splitOff(child, int32(child.rank), 0)
			if err != nil {
				return err
			}
			if grandchild.n != 1 {
				return fmt.Errorf("a split by rank has %d ranks", grandchild.n)
			}
			twin, err := splitOff(child, 0, 0)
			if err != nil {
				return err
			}
			err = errors.Join(tryAll(child, 2), tryAll(c, 1), tryAll(grandchild, 3), tryAll(twin, 4))
			return errors.Join(err, child.Destroy(), grandchild.Destroy(), twin.Destroy())
		}))
		w.destroy()
	})
}

// A split in a group beside calls, of two parents at once; and of a non-blocking parent, whose child is known at once.
func TestSplitsInGroups(t *testing.T) {
	overEach(t, func(t *testing.T) {
		const n = 3
		a, b, q := newWorld(t, n), newWorld(t, n), newQueued(t, n)
		a.must(a.each(func(r int) error {
			s := [2]*SplitSpec{}
			items := make([]Item, 2, 3)
			for k, w := range []*world{a, b} {
				s[k] = &SplitSpec{ID: nextID(), Handle: &handle{}, Color: int32(r / 2), Blocking: true}
				items[k] = Item{Comm: w.comms[r], Split: s[k]}
			}
			p := (&shape{fn: coll.AllReduce, typ: coll.Float32, n: n, count: 999, seed: 5}).part(r)
			if err := Enqueue(append(items, Item{Comm: a.comms[r], Call: &p.call})); err != nil {
				return err
			}
			x, y := Find(s[0].ID), Find(s[1].ID)
			return errors.Join(p.check(), tryAll(x, 1), tryAll(y, 2), x.Destroy(), y.Destroy())
		}))
		q.must(q.each(func(r int) error {
			s := &SplitSpec{ID: nextID(), Handle: &handle{}, Color: 7, Key: int32(-r)}
			if err := started(Enqueue([]Item{{Comm: q.comms[r], Split: s}})); err != nil {
				return err
			}
			child := Find(s.ID)
			if child == nil {
				return fmt.Errorf("the child is not known while it is made")
			}
			if err := idle(child); err != nil {
				return err
			}
			p := (&shape{fn: coll.AllGather, typ: coll.Int32, n: n, count: 44, seed: 5}).part(n - 1 - r)
			if err := started(do(child, &p.call)); err != nil {
				return err
			}
			if err := idle(child); err != nil {
				return err
			}
			return errors.Join(p.check(), child.Destroy())
		}))
		q.destroy()
		a.destroy()
		b.destroy()
	})
}

// One communicator of a group fails; the split of the other is still made, as the other ranks expect.
func TestSplitBesideAFailure(t *testing.T) {
	overEach(t, func(t *testing.T) {
		const n = 2
		a, b := newWorld(t, n), newWorld(t, n)
		if err := a.comms[1].Abort(); err != nil {
			t.Fatal(err)
		}
		a.must(a.each(func(r int) error {
			s := &SplitSpec{ID: nextID(), Handle: &handle{}, Color: 0, Blocking: true}
			items := []Item{{Comm: b.comms[r], Split: s}}
			p := (&shape{fn: coll.AllReduce, typ: coll.Float32, n: n, count: 9, seed: 5}).part(r)
			if r == 0 {
				items = append(items, Item{Comm: a.comms[0], Call: &p.call})
			}
			err := Enqueue(items)
			if r == 0 {
				wantError(t, err, RemoteError, "rank 1 has aborted")
			}
			if items[0].Err != nil {
				return items[0].Err
			}
			child := Find(s.ID)
			return errors.Join(tryAll(child, 1), child.Destroy())
		}))
		a.abort()
		b.destroy()
	})
}
