package tcp

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/secure/securetest"
	"hccl.dev/hccl/proto"
)

// drive moves n slices of size bytes one way between two fabrics of one thread, and returns when all were read.
func drive(out proto.Out, in proto.In, a, b *node, n int, size uint64) {
	sent, got := 0, 0
	for got < n {
		if sent < n {
			if p, _ := out.Reserve(size, 0); p != 0 {
				out.Commit(size)
				sent++
			}
		}
		a.Poll()
		b.Poll()
		for p, _, _ := in.Peek(); p != 0; p, _, _ = in.Peek() {
			in.Release()
			got++
		}
	}
}

func TestSlicesAllocateNothing(t *testing.T) {
	for k, size := range []uint64{8, 64 << 10, MaxSlice, 8, MaxSlice} {
		nodes := mesh(t, 2, loopback)
		if k > 2 {
			nodes = sealedBy(t, 2, 1, loopback, securetest.Pair)
		}
		out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
		nodes[0].Take()
		nodes[1].Take()
		drive(out, in, nodes[0], nodes[1], 4*slots, size)
		if n := testing.AllocsPerRun(20, func() { drive(out, in, nodes[0], nodes[1], 2*slots, size) }); n != 0 {
			t.Errorf("%v allocations for %d slices of %d bytes, want 0", n, 2*slots, size)
		}
		msg := make([]byte, 64)
		nodes[1].OnControl(nil)
		control := func() {
			for range 4 {
				_ = nodes[0].Control(1, msg)
				nodes[1].Poll()
			}
		}
		control()
		if n := testing.AllocsPerRun(20, control); n != 0 {
			t.Errorf("%v allocations for 4 control messages, want 0", n)
		}
	}
}

// The benchmarks run against a second process, as ranks do: the child echoes, or reads. Each end either polls itself or leaves
// the reading to the background.
func benchPeer(b *testing.B, mode string) (*node, func()) {
	runtime.GOMAXPROCS(16) // as the core does: somebody must be left to watch the sockets
	ours, theirs := loopback(b)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+mode)
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(theirs), "socket")}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_ = cmd.ExtraFiles[0].Close()
	d := newNode(0, 2)
	if err := d.Add(1, ours); err != nil {
		b.Fatal(err)
	}
	return d, func() {
		d.Close(hang)
		_ = cmd.Wait()
	}
}

func BenchmarkPingPong8B(b *testing.B) {
	for _, mode := range []string{"echo", "echo polling"} {
		b.Run(mode, func(b *testing.B) {
			d, end := benchPeer(b, mode)
			defer end()
			d.polls = mode == "echo polling"
			out, in := outOf(b, d, proto.Pair, 0, 1), inOf(b, d, proto.Pair, 0, 1)
			b.ReportAllocs()
			took := make([]time.Duration, 0, 1<<20)
			for b.Loop() {
				start := time.Now()
				pass(out, 8)
				d.spin(func() bool { return read(in) })
				if len(took) < cap(took) {
					took = append(took, time.Since(start))
				}
			}
			slices.Sort(took) // the median bears a busy machine, the mean does not
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/2000, "p50-us/way")
			b.ReportMetric(float64(took[len(took)/20].Nanoseconds())/2000, "p5-us/way")
		})
	}
}

func BenchmarkOneWay(b *testing.B) {
	for _, mode := range []string{"echo", "echo polling"} {
		for _, size := range []uint64{64 << 10, 256 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%dKiB", mode, size>>10), func(b *testing.B) {
				d, end := benchPeer(b, mode)
				d.polls = mode == "echo polling"
				out := outOf(b, d, proto.Msg, 0, 1) // the child only reads these
				b.SetBytes(int64(size))
				b.ReportAllocs()
				before := cpu()
				for b.Loop() {
					for left := size; left > 0; left -= min(left, MaxSlice) {
						d.spin(func() bool { return pass(out, min(left, MaxSlice)) })
					}
				}
				d.spin(func() bool { return out.(*outPort).to[0].flow.idle() })
				gib := float64(b.N) * float64(size) / (1 << 30)
				end() // the child's time counts when it has ended
				b.ReportMetric((cpu()-before).Seconds()/gib, "cpu-s/GiB")
			})
		}
	}
}

// cpu is the processor time of this process and the children that have ended.
func cpu() (t time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		_ = unix.Getrusage(who, &u)
		t += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return t
}

func pass(out proto.Out, n uint64) bool {
	p, err := out.Reserve(n, 0)
	if err != nil {
		panic(err)
	}
	if p != 0 {
		out.Commit(n)
	}
	return p != 0
}

func read(in proto.In) bool {
	p, _, _ := in.Peek()
	if p != 0 {
		in.Release()
	}
	return p != 0
}

// spin waits as a thread in an operation does at first.
func (d *node) spin(done func() bool) {
	if d.polls {
		d.Take()
		defer d.Rest()
	}
	for n := 0; !done(); n++ {
		if d.polls {
			d.Poll()
		}
		if n%16 == 15 { // the other end may need this processor; a Poll takes some hundred ns, so this is every few us
			yield()
		}
	}
}

// echo answers 8-byte slices and reads the rest, until the parent leaves.
func echo(polls bool) {
	runtime.GOMAXPROCS(16)
	d := newNode(1, 2)
	if err := d.Add(0, 3); err != nil {
		panic(err)
	}
	d.polls = polls
	out, _ := d.Out(proto.Pair, 0, 0)
	small, _ := d.In(proto.Pair, 0, 0)
	large, _ := d.In(proto.Msg, 0, 0)
	for d.goneErr(0) == nil {
		d.spin(func() bool {
			if read(small) {
				pass(out, 8)
				return true
			}
			return read(large) || d.peers[0].lost() != nil
		})
	}
	d.Close(0)
}

// BenchmarkPollIdle is what a thread pays for each look while nothing comes.
func BenchmarkPollIdle(b *testing.B) {
	nodes := mesh(b, 2, loopback)
	nodes[0].Take()
	for b.Loop() {
		nodes[0].Poll()
	}
}

// BenchmarkTakeRest is what an operation pays for keeping the background away, and BenchmarkTakeGive what it costs to have it back.
func BenchmarkTakeRest(b *testing.B) {
	nodes := mesh(b, 2, loopback)
	for b.Loop() {
		nodes[0].Take()
		nodes[0].Poll()
		nodes[0].Rest()
	}
}

func BenchmarkTakeGive(b *testing.B) {
	nodes := mesh(b, 2, loopback)
	for b.Loop() {
		nodes[0].Take()
		nodes[0].Poll()
		nodes[0].Give()
	}
}
