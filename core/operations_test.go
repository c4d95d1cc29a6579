package core

import (
	"fmt"
	"testing"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto/porttest"
)

var collectives = []coll.Func{coll.AllReduce, coll.Reduce, coll.Broadcast, coll.AllGather, coll.ReduceScatter, coll.AlltoAll,
	coll.Gather, coll.Scatter, coll.AllGatherV, coll.ReduceScatterV, coll.AlltoAllV}

var reductions = []coll.RedOp{coll.Sum, coll.Prod, coll.Max, coll.Min, coll.Avg, coll.PreMulSum, coll.And, coll.Or, coll.Xor}

// reductionFor is the kth reduction, or the next one that types like typ have.
func reductionFor(typ coll.DataType, k int) coll.RedOp {
	for !reductions[k%len(reductions)].Takes(typ) {
		k++
	}
	return reductions[k%len(reductions)]
}

// play runs one operation on all ranks of a world.
func (w *world) play(o *shape) {
	w.t.Helper()
	o.n = len(w.comms)
	w.must(w.each(func(r int) error {
		p := o.part(r)
		if err := do(w.comms[r], &p.call); err != nil {
			return fmt.Errorf("%v: %w", o, err)
		}
		return p.check()
	}))
}

func sizes(t testing.TB) []int {
	if testing.Short() {
		return []int{1, 2, 5}
	}
	return []int{1, 2, 3, 5, 8}
}

// Every function with every type and reduction in turn, counts from nothing past a slice, every root, in place and not.
func TestOperations(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, n := range sizes(t) {
			w := newWorld(t, n)
			k := 0
			for _, fn := range collectives {
				for _, count := range []uint64{0, 1, 13, 700, 40000} {
					for _, inPlace := range []bool{false, true} {
						k++
						typ := porttest.Types[k%len(porttest.Types)]
						w.play(&shape{fn: fn, typ: typ, red: reductionFor(typ, k), count: count,
							root: k % n, inPlace: inPlace && fn != coll.AlltoAll && fn != coll.AlltoAllV, seed: uint64(k)})
					}
				}
			}
			w.destroy()
		}
	})
}

// Each algorithm that a call asks for is taken, or another where there is none such.
func TestAlgorithmsOfCalls(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 3)
		for k, algo := range []string{"ring", "oneshot", "twoshot", "ring,direct"} {
			for _, fn := range collectives {
				w.play(&shape{fn: fn, typ: coll.Int32, count: 5000, seed: uint64(k), algo: algo, channels: 1 + k%2})
			}
		}
		w.destroy()
	})
}

// Several communicators in one group, collectives and messages mixed, in orders that differ between the ranks where they may.
func TestGroups(t *testing.T) {
	overEach(t, func(t *testing.T) {
		const n = 3
		a, b := newWorld(t, n), newWorld(t, n)
		for round := range 4 {
			a.must(a.each(func(r int) error {
				x := (&shape{fn: coll.AllReduce, typ: coll.Float32, n: n, count: 1000 << round, seed: 1}).part(r)
				y := (&shape{fn: coll.AllGather, typ: coll.Int64, n: n, count: 77, seed: 2}).part(r)
				z := (&shape{fn: coll.Broadcast, typ: coll.Uint8, n: n, count: 100000, root: round % n, seed: 3}).part(r)
				ring := newRing(r, n, uint64(5000*round))
				items := []Item{{Comm: a.comms[r], Call: &x.call}, {Comm: b.comms[r], Call: &y.call}, {Comm: a.comms[r], Call: &z.call},
					{Comm: b.comms[r], Call: &ring.send}, {Comm: b.comms[r], Call: &ring.recv}}
				if r == 1 { // between communicators the order is free
					items[0], items[1] = items[1], items[0]
				}
				if err := Enqueue(items); err != nil {
					return err
				}
				for _, p := range []*part{x, y, z} {
					if err := p.check(); err != nil {
						return err
					}
				}
				return ring.check()
			}))
		}
		b.destroy()
		a.destroy()
	})
}

// One thread holds all ranks: it makes them in one group and runs each operation in one.
func TestOneThreadHoldsAllRanks(t *testing.T) {
	overEach(t, func(t *testing.T) {
		const n = 5
		w, id := &world{t: t, comms: make([]*Comm, n)}, ids.ID()
		inits := make([]Item, n)
		for r := range n {
			inits[r].Init = spec(id, n, r, true)
		}
		w.group(inits)
		for r := range n {
			w.comms[r] = Find(inits[r].Init.ID)
		}
		for k, fn := range collectives {
			parts, items := make([]*part, n), make([]Item, n)
			for r := range n {
				parts[r] = (&shape{fn: fn, typ: coll.Int32, n: n, count: 3000, root: k % n, seed: uint64(k)}).part(r)
				items[r] = Item{Comm: w.comms[r], Call: &parts[r].call}
			}
			w.group(items)
			for _, p := range parts {
				if err := p.check(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, c := range w.comms {
			if err := c.Destroy(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
