package tcp

import (
	"math/rand/v2"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestClassesHoldWhatTheyAreFor(t *testing.T) {
	for _, n := range []uint64{0, 1, 1024, 1025, 2048, 2049, 131072, 131073, MaxSlice} {
		c := classOf(n)
		if size := uint64(1) << (c + minClass); n > size || c > 0 && n <= size/2 {
			t.Errorf("%d bytes are of class %d, %d bytes", n, c, size)
		}
	}
}

// TestPoolFromManyThreads checks that nobody gets a buffer that another one has, while idle chunks are given back.
func TestPoolFromManyThreads(t *testing.T) {
	var p pool
	var wait sync.WaitGroup
	for id := range 4 {
		wait.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(id)))
			var held []*buf
			for range 20_000 {
				if len(held) < 20 && rng.IntN(2) == 0 {
					b := p.get(uint64(rng.IntN(MaxSlice+1)), false)
					b.mem[0], b.mem[len(b.mem)-1] = byte(id), byte(id)
					held = append(held, b)
				} else if len(held) > 0 {
					i := rng.IntN(len(held))
					b := held[i]
					if b.mem[0] != byte(id) || b.mem[len(b.mem)-1] != byte(id) {
						t.Error("another thread wrote into this buffer")
						return
					}
					held[i] = held[len(held)-1]
					held = held[:len(held)-1]
					p.put(b)
				}
				if rng.IntN(2000) == 0 {
					p.trim()
				}
			}
			for _, b := range held {
				p.put(b)
			}
		})
	}
	wait.Wait()
	if n := p.outstanding(); n != 0 {
		t.Errorf("%d buffers are lost", n)
	}
}

func TestTrimGivesPagesBack(t *testing.T) {
	var p pool
	var held []*buf
	for range 80 { // ten chunks
		b := p.get(MaxSlice, false)
		for i := 0; i < len(b.mem); i += 4096 {
			b.mem[i] = 1
		}
		held = append(held, b)
	}
	for _, b := range held {
		p.put(b)
	}
	p.trim()
	resident := 0
	for i := range p.used {
		mem := p.chunks[i].Load().mem
		vec := make([]byte, len(mem)/4096)
		if err := mincore(mem, vec); err != nil {
			t.Skipf("mincore: %v", err)
		}
		for _, v := range vec {
			resident += int(v & 1)
		}
	}
	if resident*4096 > idleBytes {
		t.Errorf("%d KiB are resident after trim, at most %d may be", resident*4, idleBytes>>10)
	}
	if b := p.get(MaxSlice, false); b.mem[0] > 1 {
		t.Error("a trimmed buffer is unusable")
	}
}

// TestPoolAtItsCap uses address space only: no page of it is touched.
func TestPoolAtItsCap(t *testing.T) {
	var p pool
	n := 0
	for p.get(MaxSlice, false) != nil {
		n++
	}
	if want := softBytes / MaxSlice; n != want {
		t.Errorf("%d buffers before the cap, want %d", n, want)
	}
	if p.get(MaxSlice, true) == nil {
		t.Error("nothing for who cannot go on without")
	}
	for i := range p.used {
		_ = unix.Munmap(p.chunks[i].Load().mem)
	}
}
