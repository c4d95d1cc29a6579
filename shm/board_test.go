package shm

import (
	"math/rand/v2"
	"sync"
	"testing"

	"hccl.dev/hccl/internal/coll"
)

// put posts a header as shm/fast does, in Go.
func put(s *Segment, stamp uint64, h *Header) {
	p := postAt(s.base + uintptr(s.boards) + uintptr(s.self)*boardSize + uintptr((stamp-1)%boardLen)*lineSize)
	p.stamp.Store(0)
	for k, w := range pack(h) {
		p.header[k].Store(w)
	}
	p.stamp.Store(stamp)
}

func TestBoard(t *testing.T) {
	segs := host(t, 2, 1)
	defer leave(segs)
	if _, ok := segs[0].Last(1); ok {
		t.Error("a new board has a last header")
	}
	for seq := uint64(1); seq <= 100; seq++ {
		h := Header{Seq: seq, Func: coll.Reduce, Type: coll.Float64, Red: coll.Max, Flags: 3, Root: -5, Count: seq << 40, Extra: ^seq}
		put(segs[1], seq, &h)
		if got, ok := segs[0].Header(1, 0, seq); !ok || got != h {
			t.Fatalf("posted %+v, read %+v", h, got)
		}
		if got, ok := segs[0].Last(1); !ok || got != h {
			t.Fatalf("last is %+v", got)
		}
	}
	if _, ok := segs[0].Header(1, 0, 36); ok {
		t.Error("the 65th header back is still there")
	}
	if _, ok := segs[0].Header(1, 0, 37); !ok {
		t.Error("the 64th header back is gone")
	}
	if _, ok := segs[0].Header(1, 1, 100); ok {
		t.Error("a header of another lane was taken")
	}
}

// A reader never sees half of a header.
func TestBoardTornReads(t *testing.T) {
	segs := host(t, 2, 1)
	defer leave(segs)
	var wg sync.WaitGroup
	wg.Add(1)
	stop := make(chan struct{})
	go func() {
		defer wg.Done()
		for seq := uint64(1); ; seq++ {
			select {
			case <-stop:
				return
			default:
				put(segs[1], seq, &Header{Seq: seq, Count: seq * 3, Extra: seq * 5, Lane: uint32(seq)})
			}
		}
	}()
	for seen := 0; seen < 2000; {
		if h, ok := segs[0].Last(1); ok {
			seen++
			if h.Count != h.Seq*3 || h.Extra != h.Seq*5 || h.Lane != uint32(h.Seq) {
				t.Errorf("half of one header, half of another: %+v", h)
				break
			}
		}
	}
	close(stop)
	wg.Wait()
}

// Whatever a peer writes on its board, into its block and into the fault record, reading it does no harm.
func TestHostileSegment(t *testing.T) {
	segs := host(t, 2, 1)
	rng := rand.New(rand.NewPCG(8, 9))
	for range 200 {
		for off := uintptr(faultState); off < uintptr(segs[0].bodies); off += 8 {
			word64(segs[0].base + off).Store(rng.Uint64() >> rng.IntN(64))
		}
		segs[0].Last(1)
		segs[0].Header(1, 0, rng.Uint64())
		segs[0].Fault()
		if st := segs[0].State(1); st > Followed {
			t.Fatal("state", st)
		}
		segs[0].Ring(1)
		segs[0].SetFault(Fault{})
	}
	leave(segs)
}

// The first fault stays, all ranks read the same, and are told.
func TestFault(t *testing.T) {
	segs := host(t, 3, 1)
	defer leave(segs)
	if _, ok := segs[0].Fault(); ok {
		t.Error("a fault in a new segment")
	}
	var wg sync.WaitGroup
	firsts := make([]bool, 3)
	for i, s := range segs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			firsts[i] = s.SetFault(Fault{Ranks: [2]int{i, 5}, Headers: [2]Header{{Seq: uint64(i), Count: 1}, {Seq: 9, Root: 2}}})
		}()
	}
	wg.Wait()
	for i, s := range segs {
		f, ok := s.Fault()
		if !ok || !firsts[f.Ranks[0]] || f.Headers[0].Seq != uint64(f.Ranks[0]) || f.Ranks[1] != 5 || f.Headers[1].Root != 2 {
			t.Errorf("rank %d reads %+v, firsts %v", i, f, firsts)
		}
		if s.Why() != WhyFault {
			t.Errorf("rank %d: why %b", i, s.Why())
		}
		s.Clear(WhyFault)
		if s.Why() != 0 {
			t.Error("not cleared")
		}
	}
}

func TestIndex(t *testing.T) {
	segs := host(t, 2, 1)
	defer leave(segs)
	s := segs[0]
	s.ranks, s.index = []int{3, 6}, indices([]int{3, 6})
	for rank := -1; rank < 9; rank++ {
		want := map[int]int{3: 0, 6: 1}
		i, ok := want[rank]
		if !ok {
			i = -1
		}
		if s.Index(rank) != i {
			t.Errorf("index of rank %d is %d, want %d", rank, s.Index(rank), i)
		}
	}
}
