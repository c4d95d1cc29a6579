package proto

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRingInAnyOrder checks the ring of every function with ranks shuffled, symbolically.
func TestRingInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	for n := 2; n <= 9; n++ {
		keys(n, func(k Key) {
			if k.Algo != Ring || k.Channels > 2 {
				return
			}
			order, err := NewOrder(rng.Perm(n))
			if err != nil {
				t.Fatal(err)
			}
			k.Order = order
			for _, s := range []Shape{{Count: 1, Slice: 4}, {Count: 29, Slice: 3}} {
				if err := Check(buildAll(t, k), s); err != nil {
					t.Fatalf("%+v, order %v, %+v: %v", k, order.ranks, s, err)
				}
			}
		})
	}
}

// TestRingFollowsOrder: each rank writes to the next one in the order and to nobody else.
func TestRingFollowsOrder(t *testing.T) {
	order, _ := NewOrder([]int{2, 0, 3, 1})
	next := map[int]int32{2: 0, 0: 3, 3: 1, 1: 2}
	for _, p := range buildAll(t, Key{Algo: Ring, N: 4, Channels: 1, Order: order}) {
		for _, s := range p.Steps[0] {
			if s.Out.Used && s.Out.Peer != next[p.Rank] {
				t.Errorf("rank %d writes to rank %d, the next is %d", p.Rank, s.Out.Peer, next[p.Rank])
			}
		}
	}
}

func TestOrderRefused(t *testing.T) {
	for _, ranks := range [][]int{{0, 0}, {1, 2}, {-1, 0}} {
		if _, err := NewOrder(ranks); err == nil || !strings.Contains(err.Error(), "once") {
			t.Errorf("%v: %v", ranks, err)
		}
	}
	order, _ := NewOrder([]int{1, 0})
	if _, err := Build(Key{N: 3, Channels: 1, Order: order}); err == nil {
		t.Error("an order of 2 ranks was taken for 3")
	}
}
