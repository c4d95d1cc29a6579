package proto_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/porttest"
)

// prepared is a call with contributions, and the plans for it.
func prepared(t testing.TB, c *call) []*proto.Plan {
	t.Helper()
	c.prepare(rand.New(rand.NewPCG(5, 6)))
	return plansOf(t, c.key)
}

func allReduce(n int, algo proto.Algo, count uint64) *call {
	return &call{key: proto.Key{Func: coll.AllReduce, Algo: algo, N: n, Channels: 1}, typ: coll.Float32, count: count, slice: 256}
}

// TestCountsThatDiffer: a peer's slice of another length is an error that names the peer and both lengths.
func TestCountsThatDiffer(t *testing.T) {
	for _, algo := range []proto.Algo{proto.Ring, proto.OneShot, proto.TwoShot} {
		c := allReduce(2, algo, 100)
		plans := prepared(t, c)
		c.ops[1].Count = 37
		w := newWorld(2, proto.MinSlots)
		w.start(t, c, plans, &porttest.Queue{})
		var err error
		for range 100 {
			for r := range w.runs {
				if _, _, e := w.runs[r].Advance(); e != nil && err == nil {
					err = e
				}
			}
		}
		var peer *proto.PeerError
		var size *proto.SizeError
		if !errors.As(err, &peer) || !errors.As(err, &size) || size.Got == size.Want {
			t.Fatalf("%s: %v, wanted a PeerError with a SizeError", algo, err)
		}
	}
}

// TestTagsThatDiffer: a slice of another operation is refused, and the refusal stays.
func TestTagsThatDiffer(t *testing.T) {
	c := allReduce(2, proto.OneShot, 100)
	plans := prepared(t, c)
	w := newWorld(2, proto.MinSlots)
	q := &porttest.Queue{}
	for r := range 2 {
		if err := w.runs[r].Start(plans[r], &c.ops[r], w.tables[r], q, 256, proto.Tag{Seq: 1, Hash: uint64(r)}); err != nil {
			t.Fatal(err)
		}
	}
	w.runs[0].Advance()
	_, done, err := w.runs[1].Advance()
	var peer *proto.PeerError
	if done || !errors.Is(err, proto.ErrTag) || !errors.As(err, &peer) || peer.Rank != 0 {
		t.Fatalf("done %v, %v, wanted ErrTag of rank 0", done, err)
	}
	if _, _, again := w.runs[1].Advance(); again != err {
		t.Errorf("after the error Advance says %v", again)
	}
}

// TestAllToAllVThatDiffers: a rank that sends nothing where another waits for something is noticed, and the other way round.
func TestAllToAllVThatDiffers(t *testing.T) {
	for _, sent := range []uint64{0, 5} {
		c := &call{key: proto.Key{Func: coll.AlltoAllV, Algo: proto.OneShot, N: 2, Channels: 1}, typ: coll.Int32, count: 8, slice: 64}
		plans := prepared(t, c)
		c.ops[0].SendCounts = []uint64{c.ops[0].RecvCounts[0], sent}
		c.ops[1].RecvCounts = []uint64{5 - sent, c.ops[1].SendCounts[1]}
		w := newWorld(2, proto.MinSlots)
		w.start(t, c, plans, &porttest.Queue{})
		w.runs[0].Advance()
		_, _, err := w.runs[1].Advance()
		var size *proto.SizeError
		if !errors.As(err, &size) || size.Got != sent*4 || size.Want != (5-sent)*4 {
			t.Errorf("sent %d where %d are due: %v", sent, 5-sent, err)
		}
	}
}

// TestBlockedNamesTheRank: the rank whose slice is missing, and the one that does not read.
func TestBlockedNamesTheRank(t *testing.T) {
	c := allReduce(3, proto.OneShot, 100)
	plans := prepared(t, c)
	w := newWorld(3, proto.MinSlots)
	w.start(t, c, plans, &porttest.Queue{})
	for _, r := range []int{0, 1} { // rank 2 is late
		w.runs[r].Advance()
	}
	w.runs[0].Advance()
	if b := w.runs[0].Blocked(); b != 2 {
		t.Errorf("rank 0 waits for %d, wanted 2", b)
	}
	k := proto.Key{Func: coll.Broadcast, Algo: proto.OneShot, N: 3, Root: 0, Channels: 1}
	c = &call{key: k, typ: coll.Uint8, count: 64 * 100, slice: 64}
	plans = prepared(t, c)
	w = newWorld(3, proto.MinSlots)
	w.start(t, c, plans, &porttest.Queue{})
	for range 10 {
		w.runs[0].Advance()
		w.runs[1].Advance()
	}
	if b := w.runs[0].Blocked(); b != 2 {
		t.Errorf("the root waits for %d, wanted 2, which reads nothing", b)
	}
	if b := w.runs[2].Blocked(); b != -1 {
		t.Errorf("a rank that has not begun waits for %d", b)
	}
}

// slowQueue finishes a command only when it is told to.
type slowQueue struct {
	porttest.Queue
	word   device.Word
	issued uint64
	fail   error
}

func (q *slowQueue) Submit(cmds []device.Cmd) (device.Fence, error) {
	if q.fail != nil {
		return device.Fence{}, q.fail
	}
	if _, err := q.Queue.Submit(cmds); err != nil {
		return device.Fence{}, err
	}
	q.issued++
	return device.Fence{W: &q.word, V: q.issued}, nil
}

// TestFencesAreWaitedFor: a slice is neither released nor committed before its command is done, and Busy tells of it.
func TestFencesAreWaitedFor(t *testing.T) {
	c := allReduce(2, proto.OneShot, 10)
	plans := prepared(t, c)
	w := newWorld(2, proto.MinSlots)
	q := &slowQueue{word: device.Word{CPU: new(atomic.Uint64)}}
	w.start(t, c, plans, q)
	for range 3 {
		if moved, done, err := w.runs[0].Advance(); moved || done || err != nil {
			t.Fatalf("moved %v, done %v, %v before the fence", moved, done, err)
		}
	}
	if q.issued != 1 || !w.runs[0].Busy() || w.runs[0].Blocked() != -1 || !w.net.Empty() {
		t.Fatalf("%d commands, busy %v, blocked by %d, ports empty %v", q.issued, w.runs[0].Busy(), w.runs[0].Blocked(), w.net.Empty())
	}
	for left := 2; left > 0; {
		left = 0
		for r := range w.runs {
			q.word.CPU.Store(q.issued)
			_, done, err := w.runs[r].Advance()
			if err != nil {
				t.Fatal(err)
			}
			if !done {
				left++
			}
		}
	}
	c.verify(t)
}

// TestFailedSubmit: the error of a queue names the call, and nothing is under way.
func TestFailedSubmit(t *testing.T) {
	c := allReduce(2, proto.OneShot, 10)
	plans := prepared(t, c)
	w := newWorld(2, proto.MinSlots)
	w.start(t, c, plans, &slowQueue{fail: errors.New("the queue is broken")})
	if _, _, err := w.runs[0].Advance(); err == nil || !strings.Contains(err.Error(), "rank 0") || w.runs[0].Busy() {
		t.Errorf("%v, busy %v", err, w.runs[0].Busy())
	}
}

// TestStartRefuses: a plan for another call, a mean that a ring cannot do, and a missing scratch.
func TestStartRefuses(t *testing.T) {
	w := newWorld(2, proto.MinSlots)
	c := allReduce(2, proto.Ring, 10)
	plans := prepared(t, c)
	start := func(p *proto.Plan, op proto.Op) error {
		return new(proto.Run).Start(p, &op, w.tables[0], &porttest.Queue{}, 64, proto.Tag{})
	}
	other, mean := c.ops[0], c.ops[0]
	other.Func = coll.AllGather
	mean.Type, mean.Red = coll.Int32, coll.Avg
	if start(plans[1], c.ops[0]) == nil || start(plans[0], other) == nil || start(plans[0], mean) == nil {
		t.Error("a plan was started for a call that it does not serve")
	}
	if err := start(plans[0], c.ops[0]); err != nil {
		t.Error(err)
	}
}

// TestValid refuses what cannot be right before a byte moves.
func TestValid(t *testing.T) {
	base := proto.Op{Func: coll.AllGather, Type: coll.Float32, N: 4, Rank: 1, Count: 100, Send: 0x10000, Recv: 0x20000}
	if err := base.Valid(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*proto.Op){
		"no send buffer":     func(o *proto.Op) { o.Send = 0 },
		"no receive buffer":  func(o *proto.Op) { o.Recv = 0 },
		"shifted by one":     func(o *proto.Op) { o.Send = o.Recv + 404 },
		"at the wrong place": func(o *proto.Op) { o.Send = o.Recv },
		"past the end":       func(o *proto.Op) { o.Recv = ^device.Ptr(0) - 1000 },
		"too many":           func(o *proto.Op) { o.Count = 1 << 61 },
		"rank 4 of 4":        func(o *proto.Op) { o.Rank = 4 },
		"all-to-all in place": func(o *proto.Op) {
			o.Func, o.Recv = coll.AlltoAll, o.Send
		},
		"three counts": func(o *proto.Op) { o.Func, o.RecvCounts = coll.AllGatherV, []uint64{1, 2, 3} },
		"a huge offset": func(o *proto.Op) {
			o.Func, o.RecvCounts, o.RecvDispls = coll.AllGatherV, []uint64{1, 2, 3, 4}, []uint64{0, 1, 1 << 62, 2}
		},
		"two lengths for itself": func(o *proto.Op) {
			o.Func, o.SendCounts, o.RecvCounts = coll.AlltoAllV, []uint64{1, 2, 3, 4}, []uint64{1, 3, 3, 4}
		},
		"bits of floats": func(o *proto.Op) { o.Func, o.Recv, o.Red = coll.AllReduce, o.Send, coll.Xor },
		"a message":      func(o *proto.Op) { o.Func = coll.Send },
	} {
		op := base
		change(&op)
		if op.Valid() == nil {
			t.Errorf("%s was taken", name)
		}
	}
	for name, change := range map[string]func(*proto.Op){
		"in place":              func(o *proto.Op) { o.Send = o.Recv + 400 },
		"nothing, NULL":         func(o *proto.Op) { o.Count, o.Send, o.Recv = 0, 0, 0 },
		"a root's NULL":         func(o *proto.Op) { o.Func, o.Recv = coll.Reduce, 0 },
		"no source to scatter":  func(o *proto.Op) { o.Func, o.Send = coll.Scatter, 0 },
		"neighbouring buffers":  func(o *proto.Op) { o.Recv = o.Send + 400 },
		"all-reduce in place":   func(o *proto.Op) { o.Func, o.Recv = coll.AllReduce, o.Send },
		"alone, all-to-all":     func(o *proto.Op) { o.Func, o.Recv, o.N, o.Rank = coll.AlltoAll, o.Send, 1, 0 },
		"empty shares, NULL, V": func(o *proto.Op) { o.Func, o.RecvCounts, o.Send, o.Recv = coll.AllGatherV, make([]uint64, 4), 0, 0 },
	} {
		op := base
		change(&op)
		if err := op.Valid(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
