package core

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
)

// ring is one rank's part in passing a message on to the next rank.
type ring struct {
	out, in    []byte
	want       []byte
	send, recv Call
}

func newRing(r, n int, size uint64) *ring {
	x := &ring{out: letter(r, size), in: make([]byte, size), want: letter((r+n-1)%n, size)}
	x.send = letterCall(coll.Send, x.out, (r+1)%n)
	x.recv = letterCall(coll.Recv, x.in, (r+n-1)%n)
	return x
}

// letter is what rank r sends.
func letter(r int, size uint64) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + r*31)
	}
	return b
}

func letterCall(fn coll.Func, b []byte, peer int) Call {
	c := Call{Func: fn, Type: coll.Uint8, Count: uint64(len(b)), Root: peer}
	if fn == coll.Send {
		c.Send = device.BytesPtr(b)
	} else {
		c.Recv = device.BytesPtr(b)
	}
	return c
}

func (x *ring) check() error {
	if !bytes.Equal(x.in, x.want) {
		return fmt.Errorf("a message of %d bytes came as % x..., wanted % x...", len(x.in), x.in[:min(16, len(x.in))],
			x.want[:min(16, len(x.want))])
	}
	return nil
}

// group runs items as one group on this thread.
func (w *world) group(items []Item) {
	w.t.Helper()
	testkit.Within(w.t, patience, "a group", func() {
		if err := Enqueue(items); err != nil {
			w.t.Error(err)
		}
	})
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// Messages of all sizes around the ring, to oneself where there is one rank, and from all to all.
func TestMessages(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for _, n := range sizes(t) {
			w := newWorld(t, n)
			for _, size := range []uint64{0, 1, 8 << 10, 8<<10 + 1, 128 << 10, 1 << 20} {
				w.must(w.each(func(r int) error {
					x := newRing(r, n, size)
					if err := Enqueue([]Item{{Comm: w.comms[r], Call: &x.recv}, {Comm: w.comms[r], Call: &x.send}}); err != nil {
						return err
					}
					return x.check()
				}))
			}
			w.must(w.each(func(r int) error { return allToAll(w.comms[r]) }))
			w.destroy()
		}
	})
}

// allToAll sends a message of its own size to everybody, itself included, in one group.
func allToAll(c *Comm) error {
	var items []Item
	in, outs := make([][]byte, c.n), make([][]byte, c.n)
	defer runtime.KeepAlive(outs)
	for p := range c.n {
		outs[p], in[p] = letter(c.rank, uint64(1000*p+20000*c.rank)), make([]byte, 1000*c.rank+20000*p)
		s, r := letterCall(coll.Send, outs[p], p), letterCall(coll.Recv, in[p], p)
		items = append(items, Item{Comm: c, Call: &s}, Item{Comm: c, Call: &r})
	}
	if err := Enqueue(items); err != nil {
		return err
	}
	for p := range c.n {
		if !bytes.Equal(in[p], letter(p, uint64(len(in[p])))) {
			return fmt.Errorf("what rank %d sent to rank %d is wrong", p, c.rank)
		}
	}
	return nil
}

// A small send needs no receiver yet; the receives may come in another order than the sends by tag.
func TestSmallSendsGoAlone(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		first, second := letter(1, 100), letter(2, 8<<10)
		sent := make(chan error, 2)
		w.must(w.each(func(r int) error {
			if r == 0 {
				a, b := letterCall(coll.Send, first, 1), letterCall(coll.Send, second, 1)
				a.Tag, b.Tag = 1, 2
				sent <- do(w.comms[0], &a)
				sent <- do(w.comms[0], &b)
				return nil
			}
			for range 2 { // both have returned before the first receive
				if err := <-sent; err != nil {
					return err
				}
			}
			x, y := make([]byte, len(first)), make([]byte, len(second))
			b, a := letterCall(coll.Recv, y, 0), letterCall(coll.Recv, x, 0)
			a.Tag, b.Tag = 1, 2
			for _, c := range []*Call{&b, &a} {
				if err := do(w.comms[1], c); err != nil {
					return err
				}
			}
			if !bytes.Equal(x, first) || !bytes.Equal(y, second) {
				return fmt.Errorf("messages were mixed up")
			}
			return nil
		}))
		w.destroy()
	})
}
