package shm

import (
	"testing"

	"pgregory.net/rapid"
)

// Blocks never overlap, lie at multiples of their size, and everything freed is one block again.
func TestBuddy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const top = 8
		b := newBuddy(top)
		owner := make([]int, 1<<top) // 0: free
		type block struct{ unit, order int }
		live := map[int]block{}
		for id := 1; id < 200; id++ {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				for k, x := range live {
					b.release(x.unit, x.order)
					paint(owner, x.unit, x.order, k, 0, t)
					delete(live, k)
					break
				}
				continue
			}
			order := rapid.IntRange(0, top).Draw(t, "order")
			unit := b.alloc(order)
			if unit < 0 {
				if room(owner, order) {
					t.Fatalf("no block of order %d although one is free", order)
				}
				continue
			}
			if unit%(1<<order) != 0 {
				t.Fatalf("block of order %d at unit %d", order, unit)
			}
			paint(owner, unit, order, 0, id, t)
			live[id] = block{unit, order}
		}
		for _, x := range live {
			b.release(x.unit, x.order)
		}
		if b.alloc(top) != 0 {
			t.Fatal("the whole is not one block after all was freed")
		}
	})
}

func paint(owner []int, unit, order, was, is int, t *rapid.T) {
	for u := unit; u < unit+1<<order; u++ {
		if owner[u] != was {
			t.Fatalf("unit %d belongs to %d, not %d", u, owner[u], was)
		}
		owner[u] = is
	}
}

// room reports whether an aligned run of free units exists: with joining halves, that is a free block.
func room(owner []int, order int) bool {
	for from := 0; from < len(owner); from += 1 << order {
		free := true
		for _, o := range owner[from : from+1<<order] {
			free = free && o == 0
		}
		if free {
			return true
		}
	}
	return false
}

func TestOrderOf(t *testing.T) {
	for n := uint64(1); n < 300; n++ {
		k := orderOf(n, 16)
		if 16<<k < n || k > 0 && 16<<(k-1) >= n {
			t.Errorf("order of %d bytes in units of 16: %d", n, k)
		}
	}
}
