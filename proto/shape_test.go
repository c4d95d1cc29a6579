package proto_test

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/porttest"
)

// TestManySources: more ranks than a command has sources go through an unrounded partial sum, with the same result.
func TestManySources(t *testing.T) {
	for _, n := range []int{device.MaxSrc, device.MaxSrc + 1, 2*device.MaxSrc + 5} {
		for _, algo := range []proto.Algo{proto.OneShot, proto.TwoShot} {
			if n > 2*device.MaxSrc && algo == proto.TwoShot || n != device.MaxSrc+1 && testing.Short() {
				continue
			}
			for _, typ := range []coll.DataType{coll.Bfloat16, coll.Float32, coll.Int32} {
				for _, red := range []coll.RedOp{coll.Avg, coll.PreMulSum} {
					c := &call{key: proto.Key{Func: coll.AllReduce, Algo: algo, N: n, Channels: 1}, typ: typ, red: red, count: 40, slice: 128}
					plans := prepared(t, c)
					need := proto.ScratchSize(plans[0], &c.ops[0], c.slice)
					if (need > 0) != (n > device.MaxSrc) {
						t.Fatalf("%d ranks need %d bytes", n, need)
					}
					scratch := make([]byte, need)
					w := newWorld(n, proto.MinSlots)
					if need > 0 {
						err := w.runs[0].Start(plans[0], &c.ops[0], w.tables[0], &porttest.Queue{}, c.slice, proto.Tag{})
						if err == nil {
							t.Fatal("a plan that needs scratch was started without")
						}
					}
					for r := range c.ops {
						c.ops[r].Scratch, c.ops[r].ScratchLen = device.BytesPtr(scratch), need
					}
					w.start(t, c, plans, host.Queue{})
					w.drive(t, c)
					c.verify(t)
					runtime.KeepAlive(scratch) // the operations hold its address only
				}
			}
		}
	}
}

// TestReproducible: the direct forms give the same bits whatever the algorithm, the channels, the slices and the place in the vector.
func TestReproducible(t *testing.T) {
	const n, count = 5, 999
	var first [][]byte
	for _, algo := range []proto.Algo{proto.OneShot, proto.TwoShot} {
		for _, channels := range []int{1, 3, 4} {
			for _, slice := range []uint64{64, 1000, 1 << 20} {
				c := &call{key: proto.Key{Func: coll.AllReduce, Algo: algo, N: n, Channels: channels}, typ: coll.Float32, count: count, slice: slice}
				plans := prepared(t, c)
				w := newWorld(n, proto.MinSlots)
				w.start(t, c, plans, &porttest.Queue{})
				w.drive(t, c)
				if first == nil {
					first = c.mem
				}
				for r := range c.mem {
					if !bytes.Equal(c.mem[r], first[r]) {
						t.Errorf("%v: rank %d has other bits than with %s", c, r, proto.OneShot)
					}
				}
			}
		}
	}
}

// TestRunIsReused: one Run serves plan after plan, also after an error and after a smaller and a larger plan.
func TestRunIsReused(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	const n = 4
	w := newWorld(n, proto.MinSlots)
	funcs := []coll.Func{coll.AllReduce, coll.Broadcast, coll.AlltoAll, coll.AllReduce, coll.AllGather, coll.Reduce, coll.ReduceScatter}
	for i := range 300 {
		k := proto.Key{Func: funcs[rng.IntN(len(funcs))], N: n, Channels: 1 + rng.IntN(3), Algo: proto.Algo(rng.IntN(int(proto.NumAlgos)))}
		if !proto.Has(k.Func, k.Algo) {
			k.Algo = proto.OneShot
		}
		c := &call{key: k, typ: porttest.Types[i%len(porttest.Types)], count: rng.Uint64N(500), slice: 1 + rng.Uint64N(700)}
		plans := prepared(t, c)
		w.start(t, c, plans, &porttest.Queue{})
		w.drive(t, c)
		c.verify(t)
	}
}

// TestRunIsRepeated: the same plan and counts again and again, with other buffers, factors and placement each time.
func TestRunIsRepeated(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.AllGatherV, coll.AlltoAllV} {
		const n = 3
		w := newWorld(n, proto.MinSlots)
		k := proto.Key{Func: f, N: n, Channels: 2, Algo: proto.OneShot}
		plans := plansOf(t, k)
		for i := range 40 {
			c := &call{key: k, typ: coll.Int32, red: coll.RedOp(5 * (i / 4 % 2)), count: 33 * uint64(1+i/20), slice: 64,
				inPlace: rng.IntN(2) == 0 && f != coll.AlltoAllV}
			c.prepare(rng)
			w.start(t, c, plans, &porttest.Queue{})
			w.drive(t, c)
			c.verify(t)
		}
	}
}

// countingQueue looks at commands and does nothing.
type countingQueue struct {
	cmds   int
	stream int
	odd    int // commands whose first destination does not start on a line
}

func (q *countingQueue) Submit(cmds []device.Cmd) (device.Fence, error) {
	for i := range cmds {
		q.cmds++
		if cmds[i].Stream {
			q.stream++
		}
		if cmds[i].Dst[0]%64 != 0 {
			q.odd++
		}
	}
	return device.Fence{}, nil
}

func (q *countingQueue) StreamFrom() uint64 { return 1 << 20 }

// TestLargeResultsAreStreamed: into the user's buffer from the limit on, never into a slot, and all on whole lines.
func TestLargeResultsAreStreamed(t *testing.T) {
	for count, want := range map[uint64]bool{1<<18 - 1: false, 1 << 18: true} { // float32: one element less than 1 MiB, and 1 MiB
		q := &countingQueue{}
		k := proto.Key{Func: coll.AllGather, Algo: proto.OneShot, N: 1, Channels: 1}
		plans := plansOf(t, k)
		op := proto.Op{Func: k.Func, Type: coll.Float32, N: 1, Count: count, Send: 1 << 30, Recv: 1 << 31}
		w := newWorld(1, proto.MinSlots)
		if err := w.runs[0].Start(plans[0], &op, w.tables[0], q, 64<<10, proto.Tag{}); err != nil {
			t.Fatal(err)
		}
		for done := false; !done; {
			var err error
			if _, done, err = w.runs[0].Advance(); err != nil {
				t.Fatal(err)
			}
		}
		if q.odd > 0 || q.stream > 0 != want || q.stream > 0 && q.stream != q.cmds {
			t.Errorf("%d elements: %d commands, %d streamed, %d off a line", count, q.cmds, q.stream, q.odd)
		}
	}
}

// TestInPlaceCopiesNothing: what lies where it belongs is not touched.
func TestInPlaceCopiesNothing(t *testing.T) {
	for _, f := range []coll.Func{coll.AllReduce, coll.Broadcast, coll.AllGather, coll.AlltoAll, coll.Gather, coll.Scatter} {
		q := &countingQueue{}
		plans := plansOf(t, proto.Key{Func: f, Algo: proto.OneShot, N: 1, Channels: 2})
		op := proto.Op{Func: f, Type: coll.Float32, Red: coll.Avg, N: 1, Count: 1000, Send: 4096, Recv: 4096}
		w := newWorld(1, proto.MinSlots)
		if err := w.runs[0].Start(plans[0], &op, w.tables[0], q, 64, proto.Tag{}); err != nil {
			t.Fatal(err)
		}
		if _, done, err := w.runs[0].Advance(); !done || err != nil || q.cmds > 0 {
			t.Errorf("%s: done %v, %v, %d commands", f, done, err, q.cmds)
		}
	}
}

// TestNoElementsIsDone: an operation without elements waits for nobody.
func TestNoElementsIsDone(t *testing.T) {
	proto.Keys(3, func(k proto.Key) {
		if k.Func == coll.AlltoAllV { // only the two ends of a pair know that nothing comes
			return
		}
		plans := plansOf(t, k)
		op := proto.Op{Func: k.Func, N: 3, Root: k.Root, RecvCounts: make([]uint64, 3)}
		w := newWorld(3, proto.MinSlots)
		if err := w.runs[0].Start(plans[0], &op, w.tables[0], &porttest.Queue{}, 64, proto.Tag{}); err != nil {
			t.Fatal(err)
		}
		if _, done, err := w.runs[0].Advance(); !done || err != nil {
			t.Errorf("%+v: done %v, %v", k, done, err)
		}
	})
}
