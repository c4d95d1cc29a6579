package core

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// newStream is a stream that goes with the test.
func newStream(t testing.TB) *Stream {
	id := NewStream()
	t.Cleanup(func() { _ = DestroyStream(id) })
	return FindStream(id)
}

// gate holds a stream up until it is opened.
func gate(s *Stream) (open func()) {
	c := make(chan struct{})
	s.HostFunc(func() { <-c })
	return sync.OnceFunc(func() { close(c) })
}

// held keeps the memory of queued calls, of which the library knows only addresses.
var held sync.Map

// on is a part's call on a stream.
func (p *part) on(s *Stream) *Call {
	held.Store(p, nil)
	c := p.call
	c.Stream = s
	return &c
}

func adding(n, count int, seed uint64) *shape {
	return &shape{fn: coll.AllReduce, typ: coll.Int64, n: n, count: uint64(count), seed: seed}
}

// Calls return before they have run, keep their order among themselves and with functions of the program, and a call on the NULL
// stream waits for them. Small sizes take the C path otherwise, large ones plans.
func TestStreamKeepsOrder(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, count := range []int{3, 30000} {
			w := newWorld(t, 2)
			w.must(w.each(func(r int) error {
				s := newStream(t)
				open := gate(s)
				defer open()
				var parts []*part
				var order []int
				for k := range 5 {
					p := adding(2, count, uint64(k)).part(r)
					if err := do(w.comms[r], p.on(s)); err != nil {
						return err
					}
					s.HostFunc(func() {
						if p.check() == nil {
							order = append(order, k)
						}
					})
					parts = append(parts, p)
				}
				if err := s.Query(); ResultOf(err) != InProgress {
					return fmt.Errorf("a stream that is held up says %v", err)
				}
				if parts[0].check() == nil {
					return fmt.Errorf("a call ran before its stream reached it")
				}
				if err := w.comms[r].AsyncError(); err != nil {
					return fmt.Errorf("queued work is no news to its program: %w", err)
				}
				open()
				last := adding(2, count, 9).part(r)
				if err := do(w.comms[r], &last.call); err != nil {
					return err
				}
				for _, p := range append(parts, last) {
					if err := p.check(); err != nil {
						return err
					}
				}
				if err := s.Synchronize(); err != nil {
					return err
				}
				if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
					return fmt.Errorf("the functions saw results in the order %v", order)
				}
				return s.Query()
			}))
			w.destroy()
		}
	})
}

// One communicator on several streams in turn: its calls run in call order though the first stream is held up.
func TestOneCommunicatorOnSeveralStreams(t *testing.T) {
	w := newWorld(t, 2)
	w.must(w.each(func(r int) error {
		a, b := newStream(t), newStream(t)
		open := gate(a)
		defer open()
		x, y := adding(2, 100, 1).part(r), adding(2, 100, 2).part(r)
		for _, err := range []error{do(w.comms[r], x.on(a)), do(w.comms[r], y.on(b))} {
			if err != nil {
				return err
			}
		}
		if ResultOf(b.Query()) != InProgress {
			return fmt.Errorf("the second call overtook the first")
		}
		open()
		if err := b.Synchronize(); err != nil {
			return err
		}
		for _, p := range []*part{x, y} {
			if err := p.check(); err != nil {
				return err
			}
		}
		return a.Synchronize()
	}))
	w.destroy()
}

// A group on two streams and two communicators starts when both streams have reached it and holds both up; with a call on NULL its
// caller waits.
func TestGroupOverStreams(t *testing.T) {
	overEach(t, func(t *testing.T) {
		v, w := newWorld(t, 2), newWorld(t, 2)
		w.must(w.each(func(r int) error {
			a, b := newStream(t), newStream(t)
			open := gate(a)
			defer open()
			x, y, z := adding(2, 5000, 1).part(r), adding(2, 5, 2).part(r), adding(2, 50, 3).part(r)
			if err := Enqueue([]Item{{Comm: v.comms[r], Call: x.on(a)}, {Comm: w.comms[r], Call: y.on(b)}}); err != nil {
				return err
			}
			if ResultOf(b.Query()) != InProgress {
				return fmt.Errorf("the group ran though one stream had not reached it")
			}
			open()
			if err := Enqueue([]Item{{Comm: v.comms[r], Call: z.on(a)}, {Comm: w.comms[r], Call: &y.call}}); err != nil {
				return err
			}
			for _, p := range []*part{x, y, z} {
				if err := p.check(); err != nil {
					return err
				}
			}
			return b.Synchronize()
		}))
		v.destroy()
		w.destroy()
	})
}

// Ranks that one thread holds, on one stream: they meet in a group.
func TestRanksOfOneStream(t *testing.T) {
	const n = 4
	w := newWorld(t, n)
	s := newStream(t)
	var items []Item
	var parts []*part
	for r := range n {
		parts = append(parts, adding(n, 3000, 7).part(r))
		items = append(items, Item{Comm: w.comms[r], Call: parts[r].on(s)})
	}
	if err := Enqueue(items); err != nil {
		t.Fatal(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if err := p.check(); err != nil {
			t.Error(err)
		}
	}
	w.destroy()
}

// What is known to be wrong at the call is refused there, and nothing is queued or broken.
func TestStreamRefusesAtTheCall(t *testing.T) {
	w := newWorld(t, 1)
	s := newStream(t)
	p := adding(1, 10, 1).part(0)
	bad := p.on(s)
	bad.Recv = 0
	wantError(t, do(w.comms[0], bad), InvalidArgument, "receive buffer is NULL")
	if err := s.Query(); err != nil {
		t.Errorf("the stream says %v", err)
	}
	if err := do(w.comms[0], p.on(s)); err != nil {
		t.Fatal(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Fatal(err)
	}
	if err := p.check(); err != nil {
		t.Error(err)
	}
	w.destroy()
}

// A fault of queued work is told once by the stream, and for good by the communicator.
func TestStreamTellsErrorOnce(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.each(func(r int) error {
			s := newStream(t)
			p := adding(2, 100+r, 1).part(r)
			if err := do(w.comms[r], p.on(s)); err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
			wantError(t, s.Synchronize(), InvalidUsage, "of 100 elements", "of 101 elements")
			if err := s.Synchronize(); err != nil {
				t.Errorf("rank %d is told twice: %v", r, err)
			}
			wantError(t, w.comms[r].AsyncError(), InvalidUsage, "disagree")
			wantError(t, do(w.comms[r], p.on(s)), InvalidUsage, "disagree")
			return nil
		})
		w.abort()
	})
}

// Nothing of the caller's is kept but buffers and a factor that is read when the operation begins.
func TestStreamKeepsArguments(t *testing.T) {
	w := newWorld(t, 2)
	w.must(w.each(func(r int) error {
		s := newStream(t)
		open := gate(s)
		defer open()
		v := (&shape{fn: coll.AlltoAllV, typ: coll.Int32, n: 2, count: 50, seed: 3}).part(r)
		call := v.on(s)
		call.SendCounts, call.SendDispls = slices.Clone(call.SendCounts), slices.Clone(call.SendDispls)
		call.RecvCounts, call.RecvDispls = slices.Clone(call.RecvCounts), slices.Clone(call.RecvDispls)
		if err := do(w.comms[r], call); err != nil {
			return err
		}
		for _, list := range [][]uint64{call.SendCounts, call.SendDispls, call.RecvCounts, call.RecvDispls} {
			clear(list)
		}
		*call = Call{}
		in, out, factor := make([]byte, 8), make([]byte, 8), make([]byte, 8)
		binary.LittleEndian.PutUint64(in, uint64(r+1))
		scaled := Call{Func: coll.AllReduce, Type: coll.Int64, Red: coll.PreMulSum, Count: 1, Send: device.BytesPtr(in),
			Recv: device.BytesPtr(out), Stream: s, Factor: device.BytesPtr(factor)}
		if err := do(w.comms[r], &scaled); err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(factor, 10)
		open()
		if err := s.Synchronize(); err != nil {
			return err
		}
		if got := binary.LittleEndian.Uint64(out); got != 30 {
			return fmt.Errorf("10 times 1 and 2 are %d", got)
		}
		runtime.KeepAlive(in)
		return v.check()
	}))
	w.destroy()
}

// Small calls on NULL go by C before the first use of a stream, not while work is queued, and again afterwards.
func TestPathIsOpenedAgain(t *testing.T) {
	use(t, "shm")
	w := newWorld(t, 2)
	w.must(w.each(func(r int) error {
		c := w.comms[r]
		s := newStream(t)
		open := gate(s)
		defer open()
		if !c.hot.IsOpen() {
			return fmt.Errorf("the path was never open")
		}
		p := adding(2, 4, 1).part(r)
		if err := do(c, p.on(s)); err != nil {
			return err
		}
		if c.hot.IsOpen() {
			return fmt.Errorf("the path is open while a call is queued")
		}
		open()
		if err := do(c, &adding(2, 4, 2).part(r).call); err != nil {
			return err
		}
		if !c.hot.IsOpen() {
			return fmt.Errorf("the path stays closed")
		}
		return p.check()
	}))
	w.destroy()
}
