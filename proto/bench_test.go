package proto_test

import (
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
)

type nullQueue struct{ cmds int }

func (q *nullQueue) Submit(cmds []device.Cmd) (device.Fence, error) {
	q.cmds += len(cmds)
	return device.Fence{}, nil
}

func (q *nullQueue) StreamFrom() uint64 { return 1 << 40 }

// openPort is a port without memory, memory barriers or peers: there is always room and always a slice.
type openPort struct{ n uint64 }

type openIn struct{ openPort }

func (p *openPort) Begin(proto.Tag, int)                               {}
func (p *openIn) Begin(proto.Tag)                                      {}
func (p *openPort) Reserve(n uint64, _ device.Ptr) (device.Ptr, error) { return 4096, nil }
func (p *openPort) Commit(n uint64)                                    {}
func (p *openPort) Blocker() int                                       { return -1 }
func (p *openPort) Peek() (device.Ptr, uint64, error)                  { return 8192, p.n, nil }
func (p *openPort) Release()                                           {}

type openPorts struct{ n uint64 }

func (p openPorts) Out(proto.Kind, int, int) (proto.Out, error) { return &openPort{p.n}, nil }
func (p openPorts) In(proto.Kind, int, int) (proto.In, error)   { return &openIn{openPort{p.n}}, nil }

// shapes of all-reduce whose slices all have one length, so that openPort can answer.
func benchRun(tb testing.TB, algo proto.Algo, n, slices int) (run func(), cmds *int) {
	const slice = 64
	k := proto.Key{Func: coll.AllReduce, Algo: algo, N: n, Channels: 1}
	plan := plansOf(tb, k)[0]
	elements := uint64(slices*slice/4) * uint64(n)
	if algo == proto.OneShot {
		elements /= uint64(n)
	}
	op := proto.Op{Func: k.Func, Type: coll.Float32, N: n, Count: elements, Send: 1 << 20, Recv: 1 << 30}
	q := &nullQueue{}
	table := proto.NewTable(openPorts{slice}, n, 0)
	var r proto.Run
	return func() {
		if err := r.Start(plan, &op, table, q, slice, proto.Tag{Seq: 1}); err != nil {
			tb.Fatal(err)
		}
		for {
			_, done, err := r.Advance()
			if err != nil {
				tb.Fatal(err)
			}
			if done {
				return
			}
		}
	}, &q.cmds
}

// TestNoAllocation: neither Start nor Advance allocates once a Run has had a plan of the shape.
func TestNoAllocation(t *testing.T) {
	for algo := proto.Algo(0); algo < proto.NumAlgos; algo++ {
		run, cmds := benchRun(t, algo, 4, 10)
		if got := testing.AllocsPerRun(100, run); got != 0 {
			t.Errorf("%s: %v allocations per operation, want 0", algo, got)
		}
		if *cmds == 0 {
			t.Errorf("%s ran no command", algo)
		}
	}
}

// BenchmarkSlice is the cost of one slice of one step: everything but data and ports.
func BenchmarkSlice(b *testing.B) {
	for algo := proto.Algo(0); algo < proto.NumAlgos; algo++ {
		b.Run(algo.String(), func(b *testing.B) {
			run, cmds := benchRun(b, algo, 2, 1000)
			b.ReportAllocs()
			run()
			*cmds = 0
			for b.Loop() {
				run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(*cmds), "ns/slice")
		})
	}
}

// BenchmarkStart is the cost of an operation with one slice for each step.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{2, 8} {
		for algo := proto.Algo(0); algo < proto.NumAlgos; algo++ {
			b.Run(algo.String()+map[int]string{2: "/2", 8: "/8"}[n], func(b *testing.B) {
				run, _ := benchRun(b, algo, n, 1)
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
			})
		}
	}
}
