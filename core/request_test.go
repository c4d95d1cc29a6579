package core

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hccl.dev/hccl/internal/coll"
)

// starts begins a call that a request will carry out.
func starts(t testing.TB, c *Comm, call Call) *Request {
	t.Helper()
	r, err := c.Start(&call)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tagged is a message whose memory stays.
func tagged(fn coll.Func, b []byte, peer int, tag int32) Call {
	call := letterCall(fn, pinned(b), peer)
	call.Tag = tag
	return call
}

func ended(t testing.TB, list ...*Request) {
	t.Helper()
	if err := WaitAll(list, patience); err != nil {
		t.Error(err)
	}
}

// Every operation as a request, many at once, beside calls on NULL, small and large, and beside messages: the collectives of a
// communicator keep the order of their starts and calls.
func TestRequestsOfAllOperations(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, n := range sizes(t) {
			w := newWorld(t, n)
			w.must(w.each(func(r int) error {
				rng := rand.New(rand.NewPCG(uint64(n), 1)) // all ranks draw the same
				var parts []*part
				var list []*Request
				for k := range 24 {
					o := randomShape(rng, n, false)
					o.algo, o.channels = "", 0
					p := o.part(r)
					held.Store(p, nil)
					if k%4 == 3 {
						if err := do(w.comms[r], &p.call); err != nil {
							return err
						}
						if err := p.check(); err != nil {
							return err
						}
						continue
					}
					parts, list = append(parts, p), append(list, starts(t, w.comms[r], p.call))
				}
				if err := WaitAll(list, patience); err != nil {
					return err
				}
				for _, p := range parts {
					if err := p.check(); err != nil {
						return err
					}
				}
				return nil
			}))
			w.destroy()
		}
	})
}

// Messages that are independent do not wait for each other, whatever the order in which they were started, and a call on NULL goes on
// while they wait.
func TestRequestsOvertake(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, size := range []uint64{100, 3 * dataBytes} {
			w := newWorld(t, 3)
			w.must(w.each(func(r int) error {
				c := w.comms[r]
				if r > 0 {
					ask := pinned(make([]byte, 1))
					if r == 1 { // sends only when rank 0 has the other's message
						if err := do(c, &[]Call{letterCall(coll.Recv, ask, 0)}[0]); err != nil {
							return err
						}
					}
					m := tagged(coll.Send, letter(r, size), 0, 7)
					if err := do(c, &m); err != nil {
						return err
					}
					return do(c, &adding(3, 50, 1).part(r).call)
				}
				one, two := pinned(make([]byte, size)), pinned(make([]byte, size))
				first, second := starts(t, c, tagged(coll.Recv, one, 1, 7)), starts(t, c, tagged(coll.Recv, two, 2, 7))
				if k, err := WaitAny([]*Request{first, second}, patience); k != 1 || err != nil {
					t.Errorf("the first to end is %d: %v", k, err)
				}
				if first.Err() != errInProgress {
					t.Errorf("the receive from rank 1 ended without a message: %v", first.Err())
				}
				m := letterCall(coll.Send, pinned([]byte{1}), 1)
				if err := do(c, &m); err != nil { // beside the receive that waits
					return err
				}
				ended(t, first)
				if !bytes.Equal(one, letter(1, size)) || !bytes.Equal(two, letter(2, size)) {
					t.Error("other data came")
				}
				return do(c, &adding(3, 50, 1).part(r).call)
			}))
			w.destroy()
		}
	})
}

// Ranks that all receive first and then send, by requests or by calls, do not wait for each other; also a rank alone.
func TestRequestsCross(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, n := range []int{1, 3} {
			w := newWorld(t, n)
			w.must(w.each(func(r int) error {
				for round := range 10 {
					size := []uint64{10, 100000}[round%2]
					b := pinned(make([]byte, size))
					in := tagged(coll.Recv, b, AnySource, int32(round))
					in.Status, in.UpTo = new(Status), true
					recv := starts(t, w.comms[r], in)
					out := tagged(coll.Send, letter(r, size), (r+1)%n, int32(round))
					if round%4 < 2 && n > 1 {
						if err := do(w.comms[r], &out); err != nil {
							return err
						}
					} else {
						ended(t, starts(t, w.comms[r], out))
					}
					ended(t, recv)
					from := (r + n - 1) % n
					want := Status{Source: int32(from), Tag: int32(round), Bytes: size}
					if recv.Status() != want || *in.Status != want || !bytes.Equal(b, letter(from, size)) {
						t.Errorf("round %d: %+v", round, recv.Status())
					}
				}
				return nil
			}))
			w.destroy()
		}
	})
}

// A request behind work on a stream waits for it, and work on a stream behind a request too: all ranks keep one order.
func TestRequestsAndStreams(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.must(w.each(func(r int) error {
			s := newStream(t)
			open := gate(s)
			defer open()
			var parts []*part
			var list []*Request
			for k := range 8 {
				p := adding(2, []int{3, 30000}[k/2%2], uint64(k)).part(r)
				held.Store(p, nil)
				parts = append(parts, p)
				if k%2 == 0 {
					if err := do(w.comms[r], p.on(s)); err != nil {
						return err
					}
				} else {
					list = append(list, starts(t, w.comms[r], p.call))
				}
			}
			if k, err := WaitAny(list, time.Millisecond); err != errInProgress {
				t.Errorf("request %d ended before the stream was let go: %v", k, err)
			}
			open()
			if err := errors.Join(WaitAll(list, patience), s.Synchronize()); err != nil {
				return err
			}
			for _, p := range parts {
				if err := p.check(); err != nil {
					return err
				}
			}
			return nil
		}))
		w.destroy()
	})
}

// Limits of waits do nothing to requests; callbacks come once each, in the order in which requests ended; a request can be waited for
// again and again.
func TestWaitsAndCallbacks(t *testing.T) {
	w := newWorld(t, 2)
	c := w.comms[0]
	var list []*Request
	told := make(chan int, 4)
	for k := range 3 {
		r := starts(t, c, tagged(coll.Recv, make([]byte, 4), 1, int32(k)))
		if err := r.Notify(func() { told <- k }); err != nil {
			t.Fatal(err)
		}
		wantError(t, r.Notify(func() {}), InvalidUsage, "callback already")
		list = append(list, r)
	}
	for _, limit := range []time.Duration{0, time.Millisecond} {
		if k, err := WaitAny(list, limit); k != -1 || err != errInProgress {
			t.Errorf("limit %v: %d, %v", limit, k, err)
		}
		if err := WaitAll(list, limit); err != errInProgress {
			t.Errorf("limit %v: %v", limit, err)
		}
	}
	for _, k := range []int{2, 0, 1} {
		m := tagged(coll.Send, make([]byte, 4), 0, int32(k))
		if err := do(w.comms[1], &m); err != nil {
			t.Fatal(err)
		}
		if got, err := WaitAny(list[k:k+1], NoLimit); got != 0 || err != nil {
			t.Errorf("request %d: %d, %v", k, got, err)
		}
		if got := <-told; got != k {
			t.Errorf("callback of %d, wanted %d", got, k)
		}
	}
	ended(t, list...)
	r := starts(t, c, tagged(coll.Send, make([]byte, 4), 1, 9))
	ended(t, r)
	if err := r.Notify(func() { told <- 9 }); err != nil || <-told != 9 {
		t.Errorf("a callback after the end: %v", err)
	}
	w.destroy()
}

// Random messages in both directions by requests, waited for in any order.
func TestRandomRequests(t *testing.T) {
	overEach(t, func(t *testing.T) {
		const n, count = 3, 60
		w := newWorld(t, n)
		w.must(w.each(func(r int) error {
			rng := rand.New(rand.NewPCG(uint64(r), 5))
			var list []*Request
			in := map[int][]byte{}
			for _, k := range rng.Perm(2 * n * count) { // receives and sends in an order of this rank's own
				peer, tag, sends := k/2%n, k/(2*n), k%2 == 0
				size := uint64(1+(tag*7919)%3) * 20000 * uint64(tag%2)
				if sends {
					list = append(list, starts(t, w.comms[r], tagged(coll.Send, letter(r+3*tag, size), peer, int32(tag))))
				} else {
					in[k] = pinned(make([]byte, size))
					list = append(list, starts(t, w.comms[r], tagged(coll.Recv, in[k], peer, int32(tag))))
				}
				if rng.IntN(9) == 0 {
					_, _ = WaitAny(list, 0)
				}
			}
			for len(list) > 0 {
				k, err := WaitAny(list, patience)
				if err != nil {
					return fmt.Errorf("%d are left: %w", len(list), err)
				}
				list = append(list[:k], list[k+1:]...)
			}
			for k, b := range in {
				if peer, tag := k/2%n, k/(2*n); !bytes.Equal(b, letter(peer+3*tag, uint64(len(b)))) {
					return fmt.Errorf("the message of rank %d with tag %d is another", peer, tag)
				}
			}
			return nil
		}))
		w.destroy()
	})
}

// Requests of a communicator that is still being made, or that returns at once from all calls, stand in line; one that is never
// made ends them.
func TestRequestsOfNonBlocking(t *testing.T) {
	overEach(t, func(t *testing.T) {
		id, n := ids.ID(), 2
		w := &world{t: t, comms: make([]*Comm, n)}
		w.must(w.each(func(r int) error {
			s := spec(id, n, r, false)
			if err := Enqueue([]Item{{Init: s}}); err != errInProgress {
				return err
			}
			c := Find(s.ID)
			w.comms[r] = c
			var parts []*part
			var list []*Request
			for k := range 4 {
				p := adding(n, 100*k*k*k, uint64(k)).part(r)
				held.Store(p, nil)
				parts = append(parts, p)
				if k == 2 {
					if err := c.Do(&p.call, 0); err != errInProgress {
						return err
					}
					continue
				}
				list = append(list, starts(t, c, p.call))
			}
			if err := WaitAll(list, patience); err != nil {
				return err
			}
			for _, p := range parts {
				if err := p.check(); err != nil {
					return err
				}
			}
			return nil
		}))
		w.destroy()
	})
	s := spec(ids.ID(), 2, 0, false)
	if err := Enqueue([]Item{{Init: s}}); err != errInProgress {
		t.Fatal(err)
	}
	c := Find(s.ID)
	p := adding(2, 10, 1).part(0)
	held.Store(p, nil)
	r := starts(t, c, p.call)
	if err := c.Abort(); err != nil {
		t.Fatal(err)
	}
	wantError(t, WaitAll([]*Request{r}, patience), InvalidUsage, "aborted")
}
