package staging

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// TestManyThreads takes and puts buffers of all classes from many threads, in a pool so small that it is at its cap most of the time,
// while others shrink it. The model: each buffer is marked by who has it, on each of its pages, and the marks stand when it is put; no
// more than the cap is ever there; every buffer without a chunk was counted; nothing is lost.
func TestManyThreads(t *testing.T) {
	const cap = 32 << 20
	p := &Pool{opts: Options{Initial: 8 << 20, Most: cap}}
	var plain, refused atomic.Uint64
	var wait, looker sync.WaitGroup
	stop := make(chan struct{})
	looker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			p.Join()
			p.look()
			p.Leave()
			if s := p.Stats(); s.Bytes > cap {
				t.Errorf("%d bytes, the cap is %d", s.Bytes, cap)
			}
		}
	})
	rounds := 2_000
	if testing.Short() {
		rounds = 500
	}
	for id := range 8 {
		wait.Go(func() { storm(t, p, uint64(id), rounds, &plain, &refused) })
	}
	wait.Wait()
	close(stop)
	looker.Wait()
	p.look()
	if p.timer != nil {
		p.timer.Stop()
	}
	s := p.Stats()
	if s.Out != 0 || s.PlainBytes != 0 || s.Plain != plain.Load() {
		t.Errorf("%+v, with %d plain buffers seen", s, plain.Load())
	}
	if plain.Load() == 0 || refused.Load() == 0 {
		t.Errorf("the cap was not met: %d plain buffers, %d refusals", plain.Load(), refused.Load())
	}
	if n := uint64(len(take(p, 4<<20))); n != cap>>22 {
		t.Errorf("%d buffers of 4 MiB in the end, %d were lost", n, cap>>22-n)
	}
}

type holding struct {
	b    *Buf
	mark uint64
}

func storm(t *testing.T, p *Pool, id uint64, rounds int, plain, refused *atomic.Uint64) {
	rng := rand.New(rand.NewPCG(7, id))
	var held []holding
	put := func(k int) {
		h := held[k]
		for at := 0; at < len(h.b.Bytes())-7; at += 4096 {
			if got := binary.LittleEndian.Uint64(h.b.Bytes()[at:]); got != h.mark {
				t.Errorf("a buffer of %d bytes has the mark %x of another at %d, not %x", len(h.b.Bytes()), got, at, h.mark)
			}
		}
		h.b.Put()
		held[k] = held[len(held)-1]
		held = held[:len(held)-1]
	}
	for k := range rounds {
		if len(held) == 0 || len(held) < 12 && rng.IntN(2) == 0 {
			n := uint64(1) << (3 + rng.IntN(mostBits-2)) // up to 4 MiB
			b := p.Get(n, rng.IntN(8) == 0)
			switch {
			case b == nil:
				refused.Add(1)
				continue
			case b.chunk == nil:
				plain.Add(1)
			}
			mark := id<<32 | uint64(k)
			for at := 0; at < len(b.Bytes())-7; at += 4096 {
				binary.LittleEndian.PutUint64(b.Bytes()[at:], mark)
			}
			held = append(held, holding{b, mark})
		} else {
			put(rng.IntN(len(held)))
		}
	}
	for len(held) > 0 {
		put(0)
	}
}
