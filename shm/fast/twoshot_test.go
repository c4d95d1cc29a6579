package fast

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/shm"
)

// pair makes two ranks that have the two-shot path.
func pair(t testing.TB) []*Hot {
	hots := ranks(t, 2)
	for _, h := range hots {
		h.attachTwo(h.seg, 1<<20)
	}
	return hots
}

// finish polls the ranks in turn until both are done.
func finish(t testing.TB, hots []*Hot) {
	t.Helper()
	for left := len(hots); left > 0; {
		for _, h := range hots {
			if _, pending := h.Pending(); !pending {
				continue
			}
			switch r := h.Poll(); r {
			case Done:
				h.Unlock()
				left--
			case NotYet, Moved:
			default:
				t.Fatalf("rank %d: %d", h.c.rank, r)
			}
		}
	}
}

func TestTwoShot(t *testing.T) {
	hots := pair(t)
	rng := rand.New(rand.NewPCG(1, 2))
	counts := []int{2049, 2050, 4096, 16384, 65536, 65537, 131072 + 3, 262144, 524288}
	for range 20 {
		counts = append(counts, 2049+rng.IntN(520000))
	}
	for _, count := range counts {
		send, recv := make([][]float32, 2), make([][]float32, 2)
		for r, h := range hots {
			room := make([]float32, count+16)
			send[r] = room[rng.IntN(16):][:count]
			recv[r] = send[r]
			if rng.IntN(2) == 0 {
				recv[r] = make([]float32, count+16)[rng.IntN(16):][:count]
			}
			for i := range send[r] {
				send[r][i] = float32(r+1)*0.1 + float32(i%1013)
			}
			op := Op{Func: coll.AllReduce, Type: coll.Float32, Count: uint64(count), Send: address(send[r]), Recv: address(recv[r])}
			if !h.Fits(op.Func, op.Type, op.Red, op.Count, 0) {
				t.Fatalf("%d elements do not fit", count)
			}
			h.Lock()
			if _, err := h.Post(&op); err != nil {
				t.Fatal(err)
			}
		}
		finish(t, hots)
		for r := range hots {
			for i, got := range recv[r] {
				want := (float32(0.1) + float32(i%1013)) + (float32(0.2) + float32(i%1013))
				if math.Float32bits(got) != math.Float32bits(want) {
					t.Fatalf("count %d rank %d element %d: %v, want %v", count, r, i, got, want)
				}
			}
		}
		runtime.KeepAlive(send)
	}
}

// An all-reduce of nothing waits for nobody, and so goes neither by mail nor in two shots, whether or not there are such.
func TestNothingIsNoTwoShot(t *testing.T) {
	for _, hots := range [][]*Hot{pair(t), ranks(t, 3)} {
		if hots[0].Fits(coll.AllReduce, coll.Float32, coll.Sum, 0, 0) {
			t.Errorf("an all-reduce of no elements, %d ranks, fits", len(hots))
		}
	}
}

// A rank whose vector is longer is told apart at the first slice, and before a result is written.
func TestTwoShotMismatch(t *testing.T) {
	hots := pair(t)
	bufs := [][]float32{make([]float32, 20000), make([]float32, 30000)}
	for r, h := range hots {
		h.Lock()
		bufs[r][0] = 7
		op := Op{Func: coll.AllReduce, Type: coll.Float32, Count: uint64(len(bufs[r])), Send: address(bufs[r]), Recv: address(bufs[r])}
		if _, err := h.Post(&op); err != nil {
			t.Fatal(err)
		}
	}
	for r := 0; r < 2; {
		switch got := hots[r].Poll(); got {
		case Moved:
			continue
		case NotYet:
			r = 1 - r
			continue
		case Mismatch:
			if hots[r].Blocker() != 1-r || bufs[r][0] != 7 {
				t.Errorf("rank %d: blocker %d, first element %v", r, hots[r].Blocker(), bufs[r][0])
			}
			return
		default:
			t.Fatalf("rank %d: %d", r, got)
		}
	}
}

// The arena takes rooms back from ranks at rest when there are many, and a rank that has lost its own gets another.
func TestRoomsAreTakenBack(t *testing.T) {
	const pairs, most = 8, 8 // MiB that rest in the arena unasked: of 16 rooms
	var all [][]*Hot
	for range pairs {
		all = append(all, pair(t))
	}
	buf := [][]float32{make([]float32, 40000), make([]float32, 40000)}
	for turn := range 3 {
		for p, hots := range all {
			for r, h := range hots {
				for i := range buf[r] {
					buf[r][i] = float32(p + r + i)
				}
				h.Lock()
				op := Op{Func: coll.AllReduce, Type: coll.Float32, Count: 40000, Send: address(buf[r]), Recv: address(buf[r])}
				if _, err := h.Post(&op); err != nil {
					t.Fatal(err)
				}
			}
			finish(t, hots)
			for i := range buf[0] {
				if want := float32(2*(p+i) + 1); buf[0][i] != want || buf[1][i] != want {
					t.Fatalf("turn %d, pair %d, element %d: %v and %v, want %v", turn, p, i, buf[0][i], buf[1][i], want)
				}
			}
		}
		held := 0
		for _, hots := range all {
			for _, h := range hots {
				if h.c.two.room != nil {
					held++
				}
			}
		}
		if held > most || held == 0 {
			t.Errorf("turn %d: %d rooms are held", turn, held)
		}
	}
}

// A room stays while an operation is pending and while the other rank has yet to read what lies in it.
func TestRoomInUseStays(t *testing.T) {
	hots := pair(t)
	buf := make([]float32, 40000)
	for _, h := range hots {
		h.Lock()
		op := Op{Func: coll.AllReduce, Type: coll.Float32, Count: 40000, Send: address(buf), Recv: address(buf)}
		if _, err := h.Post(&op); err != nil {
			t.Fatal(err)
		}
	}
	for r := NotYet; r != Done; r = hots[0].Poll() {
		if hots[0].giveRoom() {
			t.Fatal("a room was given back in the middle of an operation")
		}
		if _, pending := hots[1].Pending(); pending {
			hots[1].Poll()
		}
	}
	hots[0].Unlock()
	if _, pending := hots[1].Pending(); pending {
		if hots[0].giveRoom() {
			t.Fatal("a room was given back that the other rank still reads")
		}
		finish(t, hots[1:])
	}
}

func TestTwoShotAllocatesNothing(t *testing.T) {
	hots := pair(t)
	buf := make([]float32, 40000)
	op := Op{Func: coll.AllReduce, Type: coll.Float32, Count: 40000, Send: address(buf), Recv: address(buf)}
	got := testing.AllocsPerRun(100, func() {
		for _, h := range hots {
			h.Lock()
			h.Post(&op)
		}
		finish(t, hots)
	})
	if got != 0 {
		t.Errorf("%v allocations per operation, want 0", got)
	}
}

// A peer that says its room lies outside its memory is refused.
func TestRoomOutsideThePeersMemory(t *testing.T) {
	hots := pair(t)
	buf := make([]float32, 40000)
	for r, h := range hots {
		h.Lock()
		if r == 1 {
			h.takeRoom()
			_, size := h.seg.View(0)
			h.setRoom(device.Ptr(uintptr(unsafe.Pointer(h.c.two.room))), size-shm.RoomSize+1)
		}
		if _, err := h.Post(&Op{Func: coll.AllReduce, Type: coll.Float32, Count: 40000, Send: address(buf), Recv: address(buf)}); err != nil {
			t.Fatal(err)
		}
	}
	for {
		hots[1].Poll()
		if r := hots[0].Poll(); r == Failed {
			return
		} else if r == Done {
			t.Fatal("done")
		}
	}
}
