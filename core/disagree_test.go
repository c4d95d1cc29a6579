package core

import (
	"fmt"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// Ranks that disagree in any field get InvalidUsage, all of them, with both sides in the text.
func TestDisagreement(t *testing.T) {
	base := shape{fn: coll.AllReduce, typ: coll.Float32, red: coll.Sum, n: 3, count: 100, seed: 1}
	cases := []struct {
		name   string
		change func(*shape)
		words  [2]string // of what most say, and of what one says
		large  bool      // only by plan
	}{
		{"count", func(o *shape) { o.count = 101 }, [2]string{"of 100 elements", "of 101 elements"}, false},
		{"type", func(o *shape) { o.typ = coll.Int32 }, [2]string{"float32", "int32"}, false},
		{"reduction", func(o *shape) { o.red = coll.Max }, [2]string{"sum", "max"}, false},
		{"function", func(o *shape) { o.fn = coll.AllGather }, [2]string{"all-reduce", "all-gather"}, false},
		{"algorithm", func(o *shape) { o.algo = "oneshot" }, [2]string{"ring", "oneshot"}, true},
	}
	overEach(t, func(t *testing.T) {
		for _, c := range cases {
			for _, scale := range []uint64{1, 1000} {
				if c.large && scale == 1 {
					continue
				}
				a, b := base, base
				if c.large {
					a.algo, b.algo = "ring", "ring"
				}
				c.change(&b)
				a.count, b.count = a.count*scale, b.count*scale
				w := newWorld(t, 3)
				for r, err := range w.each(func(r int) error {
					o := &a
					if r == 1 {
						o = &b
					}
					p := o.part(r)
					return do(w.comms[r], &p.call)
				}) {
					words := []string{"rank 1", "operation 1", c.words[0], c.words[1]}
					if c.name == "count" {
						words = []string{"rank 1", fmt.Sprintf("of %d elements", a.count), fmt.Sprintf("of %d elements", b.count)}
					}
					t.Run(fmt.Sprintf("%s x%d rank %d", c.name, scale, r), func(t *testing.T) { wantError(t, err, InvalidUsage, words...) })
				}
				w.abort()
			}
		}
	})
}

// Roots that differ: each takes itself for the root, or waits for another. The call or the next question says so to all.
func TestDisagreementOfRoots(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, fn := range []coll.Func{coll.Broadcast, coll.Reduce, coll.Gather, coll.Scatter} {
			w := newWorld(t, 3)
			errs := w.each(func(r int) error {
				p := (&shape{fn: fn, typ: coll.Int32, n: 3, count: 50, root: r % 2, seed: 1}).part(r)
				err := do(w.comms[r], &p.call)
				if err == nil { // it could complete before its peers came: the fault is told to who asks
					err = awaitFailure(w.comms[r])
				}
				return err
			})
			for r, err := range errs {
				t.Run(fmt.Sprintf("%v rank %d", fn, r), func(t *testing.T) { wantError(t, err, InvalidUsage, "root 0", "root 1") })
			}
			w.abort()
		}
	})
}

// Ranks that all took themselves for the root waited for nobody. What they gave must not hold up a later operation without an end,
// however many slots it fills.
func TestAllRootsThenSum(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, count := range []uint64{10, 20000, 40000, 50000, 60000, 100000} {
			w := newWorld(t, 2)
			for r, err := range w.each(func(r int) error {
				p := (&shape{fn: coll.Broadcast, typ: coll.Int32, n: 2, count: count, root: r, seed: 1}).part(r)
				if err := do(w.comms[r], &p.call); err != nil {
					return err
				}
				return sum(w.comms[r], count)
			}) {
				t.Run(fmt.Sprintf("%d rank %d", count, r), func(t *testing.T) { wantError(t, err, InvalidUsage, "root 0", "root 1") })
			}
			w.abort()
		}
	})
}

// Ranks that make the same calls in different orders.
func TestDisagreementOfOrder(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		for _, err := range w.each(func(r int) error {
			x := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: 2, count: 20000, seed: 1}).part(r)
			y := (&shape{fn: coll.AllGather, typ: coll.Int32, n: 2, count: 20000, seed: 1}).part(r)
			items := []Item{{Comm: w.comms[r], Call: &x.call}, {Comm: w.comms[r], Call: &y.call}}
			if r == 1 {
				items[0], items[1] = items[1], items[0]
			}
			return Enqueue(items)
		}) {
			wantError(t, err, InvalidUsage, "all-reduce", "all-gather", "rank 0", "rank 1", "same order")
		}
		w.abort()
	})
}

// A message and a receive that differ in count or type, whichever side comes first, small and announced.
func TestDisagreementOfMessages(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, late := range []int{0, 1} { // which side comes second
			for _, count := range []uint64{64, 100000} {
				for _, typ := range []coll.DataType{coll.Int8, coll.Float16} {
					w := newWorld(t, 2)
					began := make(chan struct{})
					mem := [2][]byte{make([]byte, 2*count+2), make([]byte, 2*count+2)}
					errs := w.each(func(r int) error {
						if r == late {
							<-began
						} else {
							defer func() { _ = recover() }()
							close(began)
						}
						call := Call{Func: coll.Send, Type: coll.Int8, Count: count, Root: 1, Send: device.BytesPtr(mem[0])}
						if r == 1 {
							call = Call{Func: coll.Recv, Type: typ, Count: count, Root: 0, Recv: device.BytesPtr(mem[1])}
							if typ == coll.Int8 {
								call.Count++
							}
						}
						err := do(w.comms[r], &call)
						if err == nil { // a small send goes alone
							err = awaitFailure(w.comms[r])
						}
						return err
					})
					for r, err := range errs {
						t.Run(fmt.Sprintf("late %d count %d %v rank %d", late, count, typ, r), func(t *testing.T) {
							wantError(t, err, InvalidUsage, "rank 0 calls send", "rank 1 calls recv", "must name the same count and type")
						})
					}
					w.abort()
				}
			}
		}
	})
}
