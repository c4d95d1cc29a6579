package core

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
)

// After the first of its kind an operation allocates nothing, on any rank: by mail, by plan, a message of either protocol, one alone
// or with neighbours waiting.
func TestOperationsDoNotAllocate(t *testing.T) {
	const n, rounds = 2, 100
	kinds := map[string]func(r int) []*Call{
		"mail": func(r int) []*Call {
			return calls(&shape{fn: coll.AllReduce, typ: coll.Float32, n: n, count: 8, seed: 1}, r)
		},
		"plan": func(r int) []*Call {
			return calls(&shape{fn: coll.AllReduce, typ: coll.Float32, n: n, count: 50000, seed: 1}, r)
		},
		"ring": func(r int) []*Call {
			return calls(&shape{fn: coll.Reduce, typ: coll.Int32, n: n, count: 9000, seed: 1}, r)
		},
		"ignored": func(r int) []*Call {
			return calls(&shape{fn: coll.Scatter, typ: coll.Int32, n: n, count: 9000, seed: 1, algo: "ring"}, r)
		},
		"gather": func(r int) []*Call {
			return calls(&shape{fn: coll.Gather, typ: coll.Int32, n: n, count: 9000, seed: 1}, r)
		},
		"v form": func(r int) []*Call {
			return calls(&shape{fn: coll.AlltoAllV, typ: coll.Int32, n: n, count: 900, seed: 1}, r)
		},
		"message": func(r int) []*Call { return pingPong(r, 100) },
		"large":   func(r int) []*Call { return pingPong(r, 300000) },
	}
	overEach(t, func(t *testing.T) {
		for name, make := range kinds {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, n)
				got := w.mallocs(rounds, make)
				for tries := 1; got > rounds/10 && tries < 5; tries++ { // what runs beside them allocates, on a slow machine often in that time
					got = min(got, w.mallocs(rounds, make))
				}
				if got > rounds/10 { // the runtime's own, such as a thread's start
					t.Errorf("%d allocations in %d operations on %d ranks", got, rounds, n)
				}
				w.destroy()
			})
		}
	})
}

var kept sync.Map // buffers whose addresses are in calls

func calls(o *shape, r int) []*Call {
	p := o.part(r)
	kept.Store(p, nil)
	return []*Call{&p.call}
}

// pingPong is a message to the other rank and one back.
func pingPong(r int, size uint64) []*Call {
	x := newRing(r, 2, size)
	kept.Store(x, nil)
	if r == 0 {
		return []*Call{&x.send, &x.recv}
	}
	return []*Call{&x.recv, &x.send}
}

// mallocs counts the allocations of the process while all ranks make their calls, after some rounds that may allocate.
func (w *world) mallocs(rounds int, calls func(r int) []*Call) uint64 {
	w.t.Helper()
	var before, after runtime.MemStats
	var warm, counted sync.WaitGroup
	warm.Add(len(w.comms))
	counted.Add(1)
	w.must(w.each(func(r int) error {
		mine := calls(r)
		err := repeat(w.comms[r], mine, 20)
		warm.Done()
		if err != nil {
			return err
		}
		if r == 0 {
			warm.Wait()
			runtime.ReadMemStats(&before)
			counted.Done()
		}
		counted.Wait()
		err = repeat(w.comms[r], mine, rounds)
		if r == 0 {
			runtime.ReadMemStats(&after)
		}
		return err
	}))
	kept.Clear()
	return after.Mallocs - before.Mallocs
}

func repeat(c *Comm, calls []*Call, rounds int) error {
	for range rounds {
		for _, call := range calls {
			if err := do(c, call); err != nil {
				return err
			}
		}
	}
	return nil
}

// The collector gets on while ranks wait: spinning, yielding and asleep, by mail, by plan and in a message.
func TestCollectorBesideWaitingRanks(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for name, wait := range map[string]func(c *Comm) error{
			"mail":    func(c *Comm) error { return sum(c, 10) },
			"plan":    func(c *Comm) error { return sum(c, 100000) },
			"message": func(c *Comm) error { m := letterCall(coll.Recv, make([]byte, 10), c.n-1); return do(c, &m) },
		} {
			t.Run(name, func(t *testing.T) {
				const n = 4
				w := newWorld(t, n)
				var late sync.WaitGroup
				late.Add(1)
				done := make(chan error, 1)
				go func() {
					done <- fmt.Errorf("%v", w.each(func(r int) error {
						if r == n-1 {
							late.Wait()
							return w.comms[r].Abort()
						}
						return wait(w.comms[r])
					}))
				}()
				testkit.Eventually(t, patience, "ranks to wait", func() bool {
					return w.comms[0].inside.Load()+w.comms[1].inside.Load()+w.comms[2].inside.Load() == n-1
				})
				for range 20 {
					testkit.Within(t, patience, "a collection", runtime.GC)
				}
				late.Done()
				<-done
				w.abort()
			})
		}
	})
}
