package fast

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/shm"
)

// ranks makes n ranks of one segment in this process.
func ranks(t testing.TB, n int) []*Hot {
	t.Helper()
	l, err := shm.Open()
	if err != nil {
		t.Fatal(err)
	}
	key := shm.NewKey()
	self, err := l.Connect(l.Name(), key, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	segs, hots := make([]*shm.Segment, n), make([]*Hot, n)
	order, peers := make([]int, n), make([]*shm.Peer, n)
	for i := range n {
		order[i], peers[i] = i, self
		if i == 0 {
			segs[0], err = shm.Create(n, 1)
		} else if fd, e := unix.FcntlInt(uintptr(segs[0].FD()), unix.F_DUPFD_CLOEXEC, 0); e == nil {
			segs[i], err = shm.Map(fd, n, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range segs {
		if err := s.Join(i, order, peers); err != nil {
			t.Fatal(err)
		}
		if hots[i], err = New(Config{Seg: s, N: n, Rank: i, Kernel: host.RunFunc()}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for i, s := range segs {
			hots[i].Free()
			s.SetState(shm.Left)
			s.Close()
		}
	})
	return hots
}

func address[T any](s []T) device.Ptr { return device.Ptr(uintptr(unsafe.Pointer(&s[0]))) }

// One thread drives all ranks, as in a group: post all, then poll all.
func TestAllReduceInOneThread(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		hots := ranks(t, n)
		for _, count := range []int{1, 2, 12, 13, 100, 2048} {
			bufs := make([][]float32, n)
			for r, h := range hots {
				bufs[r] = make([]float32, count)
				for i := range bufs[r] {
					bufs[r][i] = float32(r+1) + float32(i%17)
				}
				op := Op{Func: coll.AllReduce, Type: coll.Float32, Count: uint64(count), Send: address(bufs[r]), Recv: address(bufs[r])}
				h.Lock()
				if r == n-1 && hots[0].Poll() != NotYet {
					t.Fatal("done before all have posted")
				}
				if _, err := h.Post(&op); err != nil {
					t.Fatal(err)
				}
			}
			for r, h := range hots {
				if got := h.Poll(); got != Done {
					t.Fatalf("rank %d: %d", r, got)
				}
				h.Unlock()
				for i, got := range bufs[r] {
					if want := float32(n*(n+1)/2) + float32(n*(i%17)); got != want {
						t.Fatalf("n %d count %d rank %d element %d: %v, want %v", n, count, r, i, got, want)
					}
				}
			}
			runtime.KeepAlive(bufs)
		}
	}
}

// Ranks that call different operations are told apart, with the rank, before a result is written.
func TestMismatch(t *testing.T) {
	hots := ranks(t, 3)
	buf := make([]float32, 32)
	for r, h := range hots {
		h.Lock()
		op := Op{Func: coll.AllReduce, Type: coll.Float32, Count: 4, Send: address(buf), Recv: address(buf[16:])}
		if r == 2 {
			op.Count = 5
		}
		h.Post(&op)
	}
	if got := hots[0].Poll(); got != Mismatch || hots[0].Blocker() != 2 {
		t.Errorf("rank 0: %d, blocker %d", got, hots[0].Blocker())
	}
	if got := hots[2].Poll(); got != Mismatch || hots[2].Blocker() != 0 {
		t.Errorf("rank 2: %d, blocker %d", got, hots[2].Blocker())
	}
	for i, v := range buf[16:] {
		if v != 0 {
			t.Errorf("element %d was written", i)
		}
	}
	for _, h := range hots {
		if _, ok := h.Pending(); !ok {
			t.Error("no longer pending")
		}
		h.Drop()
		h.Unlock()
		if h.mail {
			t.Error("mail is used after a mismatch")
		}
	}
}

// Numbers and headers are those of the board, and the fingerprint in C is that of Go.
func TestBegin(t *testing.T) {
	hots := ranks(t, 2)
	for seq := uint64(1); seq < 200; seq++ {
		hd := shm.Header{Func: coll.Reduce, Type: coll.Int64, Red: coll.Max, Flags: 7, Root: int32(seq) - 100, Count: seq * seq << 33,
			Extra: seq & 3 * 0x1234567890}
		if got := hots[1].Begin(&hd); got != seq || hd.Seq != seq {
			t.Fatalf("number %d, want %d", got, seq)
		}
		got, ok := hots[0].seg.Header(1, 0, seq)
		if !ok || got != hd {
			t.Fatalf("began %+v, the board has %+v", hd, got)
		}
		if c, g := cHash(&hd), hd.Hash(); c != g {
			t.Fatalf("fingerprint %x in C, %x in Go", c, g)
		}
	}
}

func TestBeginWithoutSegment(t *testing.T) {
	h, err := New(Config{N: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Free()
	if h.Ptr() != nil || h.mail {
		t.Error("a communicator of one rank has mail")
	}
	if seq := h.Begin(&shm.Header{}); seq != 1 {
		t.Error("number", seq)
	}
	if _, err := h.Post(&Op{Count: 1}); err == nil {
		t.Error("mail was posted")
	}
}

func TestFits(t *testing.T) {
	tests := []struct {
		f     coll.Func
		dt    coll.DataType
		red   coll.RedOp
		count uint64
		n     int
		want  bool
	}{
		{coll.AllReduce, coll.Float32, coll.Sum, 2048, 2, true},
		{coll.AllReduce, coll.Float32, coll.Sum, 2049, 2, false},
		{coll.AllReduce, coll.Float32, coll.NumOps, 1, 2, false},
		{coll.AllReduce, coll.NumTypes, coll.Sum, 1, 2, false},
		{coll.AllReduce, coll.Float32, coll.Sum, 0, 2, false},
		{coll.AllReduce, coll.Int8, coll.Avg, ^uint64(0), 2, false},
		{coll.AllGather, coll.Int8, 77, 8192, 64, true},
		{coll.AllGather, coll.Int8, 0, 8192, 65, false},
		{coll.ReduceScatter, coll.Float64, coll.Max, 256, 4, true},
		{coll.ReduceScatter, coll.Float64, coll.Max, 257, 4, false},
		{coll.Barrier, coll.Bool, coll.Xor, 1, 64, true},
		{coll.AlltoAll, coll.Float16, 0, 1365, 3, true},
		{coll.AlltoAll, coll.Float16, 0, 1366, 3, false},
		{coll.Broadcast, coll.Float32, 0, 1, 2, false},
		{coll.Reduce, coll.Float32, coll.Sum, 1, 2, false},
		{coll.Gather, coll.Float32, coll.Sum, 1, 2, false},
	}
	for _, x := range tests {
		if got := fitsMail(x.f, x.dt, x.red, x.count, x.n); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// Many threads under one lock: none is lost, none is inside with another. The counters are atomic for the race detector's sake,
// which does not see a lock in C memory.
func TestLock(t *testing.T) {
	h := ranks(t, 2)[0]
	var inside, total atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := range 2000 {
				if k%3 != 0 || !h.TryLock() {
					h.Lock()
				}
				if inside.Add(1) != 1 {
					t.Error("two threads hold the lock")
				}
				total.Add(1)
				inside.Add(-1)
				h.Unlock()
			}
		}()
	}
	wg.Wait()
	if got := total.Load(); got != 16000 {
		t.Error("total", got)
	}
}

// The collector is not held up by a rank that polls for another that does not come.
func TestCollectorDuringPoll(t *testing.T) {
	hots := ranks(t, 2)
	buf := make([]float64, 1)
	op := Op{Func: coll.AllReduce, Type: coll.Float64, Count: 1, Send: address(buf), Recv: address(buf)}
	hots[0].Lock()
	hots[0].Post(&op)
	done := make(chan Result)
	go func() {
		for {
			if r := hots[0].Poll(); r != NotYet {
				done <- r
				return
			}
		}
	}()
	for range 20 {
		runtime.GC()
	}
	hots[1].Lock()
	hots[1].Post(&op)
	if r := <-done; r != Done {
		t.Error(r)
	}
	hots[1].Poll()
}

func TestPostAllocatesNothing(t *testing.T) {
	hots := ranks(t, 2)
	buf := make([]float64, 8)
	op := Op{Func: coll.AllReduce, Type: coll.Float64, Count: 8, Send: address(buf), Recv: address(buf)}
	got := testing.AllocsPerRun(1000, func() {
		for _, h := range hots {
			h.Lock()
			h.Post(&op)
		}
		for _, h := range hots {
			h.Poll()
			h.Unlock()
			h.Begin(&shm.Header{Func: coll.Broadcast})
		}
	})
	if got != 0 {
		t.Errorf("%v allocations per operation, want 0", got)
	}
}

// build compiles the C driver with the given flags.
func build(t testing.TB, flags ...string) string {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		t.Skip("no C compiler: ", err)
	}
	kernels, _ := filepath.Glob("../../device/host/*.c")
	out := filepath.Join(t.TempDir(), "driver")
	args := append(flags, "-std=gnu11", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", out, "testdata/driver/driver.c",
		"hot.c", "twoshot.c", "fast.c")
	if text, err := exec.Command(cc, append(append(args, kernels...), "-lm")...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, text)
	}
	return out
}

// The C path among processes, under the sanitizers, with ranks that fall asleep.
func TestDriver(t *testing.T) {
	driver := build(t, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover")
	ops := 2000
	if testing.Short() {
		ops = 300
	}
	for _, n := range []int{2, 3, 4, 7} {
		text, err := exec.Command(driver, "check", fmt.Sprint(n), fmt.Sprint(ops), fmt.Sprint(n*31+1)).CombinedOutput()
		if err != nil {
			t.Errorf("%d ranks: %v\n%s", n, err, text)
		}
	}
}

// BenchmarkDriver prints the C path's latencies between pinned processes.
func BenchmarkDriver(b *testing.B) {
	driver := build(b, "-O2")
	for b.Loop() {
		for _, bytes := range []string{"8", "512", "4096", "8192", "65536", "262144", "1048576"} {
			text, _ := exec.Command(driver, "bench", "2", bytes, "100000").CombinedOutput()
			b.Logf("%s", text)
		}
	}
}

func BenchmarkBegin(b *testing.B) {
	h := ranks(b, 2)[0]
	hd := shm.Header{Func: coll.AllGather, Count: 5}
	for b.Loop() {
		h.Begin(&hd)
	}
}

// What C has left pending is taken over once: by the call that it belongs to, or by who ends the communicator.
func TestClaim(t *testing.T) {
	h := ranks(t, 2)[0]
	*h.item() = 7
	for k, c := range []struct {
		claim func() bool
		want  bool
	}{
		{func() bool { return h.Claim(8) }, false},
		{func() bool { return h.Claim(7) }, true},
		{func() bool { return h.Claim(7) || h.Claim(0) || h.ClaimAny() }, false},
		{func() bool { *h.item() = 7; return h.ClaimAny() }, true},
		{func() bool { return h.ClaimAny() || h.Claim(7) }, false},
	} {
		if got := c.claim(); got != c.want {
			t.Errorf("claim %d: %v, want %v", k, got, c.want)
		}
	}
}
