package proto_test

import (
	"math/rand/v2"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/porttest"
)

// world is the ranks of a communicator in this goroutine: tables, reusable Runs, and the net between them.
type world struct {
	net    *porttest.Net
	tables []*proto.Table
	runs   []proto.Run
	seq    uint64
}

func newWorld(n, slots int) *world {
	w := &world{net: porttest.NewNet(n, slots), runs: make([]proto.Run, n)}
	for r := range n {
		w.tables = append(w.tables, proto.NewTable(w.net.Ports(r), n, r))
	}
	return w
}

// start starts a call on all ranks.
func (w *world) start(t testing.TB, c *call, plans []*proto.Plan, q device.Queue) {
	t.Helper()
	w.seq++
	for r := range w.runs {
		op := &c.ops[r]
		if err := op.Valid(); err != nil {
			t.Fatalf("%v: rank %d: %v", c, r, err)
		}
		if err := w.runs[r].Start(plans[r], op, w.tables[r], q, c.slice, proto.Tag{Seq: w.seq, Hash: 7}); err != nil {
			t.Fatalf("%v: rank %d: %v", c, r, err)
		}
	}
}

// drive advances the ranks in turn until all are done.
func (w *world) drive(t testing.TB, c *call) {
	t.Helper()
	for left := len(w.runs); left > 0; {
		left = 0
		any := false
		for r := range w.runs {
			moved, done, err := w.runs[r].Advance()
			if err != nil {
				t.Fatalf("%v: rank %d: %v", c, r, err)
			}
			any = any || moved
			if !done {
				left++
			}
		}
		if left > 0 && !any {
			t.Fatalf("%v: nobody gets on; rank 0 waits for %d", c, w.runs[0].Blocked())
		}
	}
	if !w.net.Empty() {
		t.Fatalf("%v: a port still holds a slice", c)
	}
}

func plansOf(t testing.TB, k proto.Key) []*proto.Plan {
	t.Helper()
	plans := make([]*proto.Plan, k.N)
	for r := range plans {
		k.Rank = r
		p, err := proto.Build(k)
		if err != nil {
			t.Fatal(err)
		}
		plans[r] = p
	}
	return plans
}

var counts = []uint64{0, 1, 2, 3, 7, 15, 16, 17, 63, 64, 65, 100, 257, 1000}

// queues are what the calls are run on: plain Go, and the kernels of host memory.
var queues = map[string]device.Queue{"go": &porttest.Queue{}, "host": host.Queue{}}

// TestRunAgainstModel runs every function, algorithm, root, type and reduction on few ranks, with counts, slices and placement at
// random, and compares every byte.
func TestRunAgainstModel(t *testing.T) {
	for name, q := range queues {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			calls, most := 0, 5
			if testing.Short() {
				most = 3
			}
			for n := 1; n <= most; n++ {
				proto.Keys(n, func(k proto.Key) { calls += runKey(t, k, q, rng) })
			}
			if calls < 1000 {
				t.Errorf("%d calls only", calls)
			}
		})
	}
}

var slices = []uint64{1, 24, 64, 200, 1 << 20}

// runKey runs one plan for all types and reductions.
func runKey(t *testing.T, k proto.Key, q device.Queue, rng *rand.Rand) (calls int) {
	plans := plansOf(t, k)
	w := newWorld(k.N, max(proto.MinSlots, plans[0].Slots))
	for _, typ := range porttest.Types {
		for red := coll.RedOp(0); red < coll.NumOps; red++ {
			if red > 0 && !k.Func.Reduces() || !red.Takes(typ) || k.Algo.Fits(k.Func, typ, red, k.N) != nil {
				continue
			}
			c := &call{key: k, typ: typ, red: red, count: counts[rng.IntN(len(counts))], slice: slices[rng.IntN(len(slices))]}
			c.inPlace = rng.IntN(2) == 0 && (k.N == 1 || k.Func != coll.AlltoAll && k.Func != coll.AlltoAllV)
			c.gaps = rng.IntN(2) == 0 && !(c.inPlace && k.Func == coll.AlltoAllV)
			c.prepare(rng)
			w.start(t, c, plans, q)
			w.drive(t, c)
			c.verify(t)
			calls++
		}
	}
	return calls
}

// TestAllTypesOnHost compares the types that plain Go does not know with the kernels themselves: one sum of all ranks in order
// for the direct forms, one for each hop around the ring.
func TestAllTypesOnHost(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for typ := coll.DataType(0); typ < coll.NumTypes; typ++ {
		for red := coll.RedOp(0); red < coll.NumOps; red++ {
			for algo := proto.Algo(0); algo < proto.NumAlgos; algo++ {
				k := proto.Key{Func: coll.AllReduce, Algo: algo, N: 4, Channels: 2}
				if !red.Takes(typ) || algo.Fits(k.Func, typ, red, k.N) != nil {
					continue
				}
				c := &call{key: k, typ: typ, red: red, count: 300, slice: 100}
				c.prepareBytes(rng)
				w := newWorld(k.N, proto.MinSlots)
				w.start(t, c, plansOf(t, k), host.Queue{})
				w.drive(t, c)
				c.verifyOnHost(t)
			}
		}
	}
}
