package proto

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRingInAnyOrder checks the ring of every function with ranks shuffled, each channel in its own way, symbolically.
func TestRingInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	for n := 2; n <= 9; n++ {
		keys(n, func(k Key) {
			if k.Algo != Ring || k.Channels > 2 {
				return
			}
			order, err := NewOrder(rng.Perm(n), rng.Perm(n))
			if err != nil {
				t.Fatal(err)
			}
			k.Order = order
			for _, s := range []Shape{{Count: 1, Slice: 4}, {Count: 29, Slice: 3}} {
				if err := Check(buildAll(t, k), s); err != nil {
					t.Fatalf("%+v, order %v, %+v: %v", k, order.rings, s, err)
				}
			}
		})
	}
}

// TestRingFollowsOrder: each rank writes to the next one in the order and to nobody else.
func TestRingFollowsOrder(t *testing.T) {
	order, _ := NewOrder([]int{2, 0, 3, 1}, []int{0, 1, 2, 3})
	next := []map[int]int32{{2: 0, 0: 3, 3: 1, 1: 2}, {0: 1, 1: 2, 2: 3, 3: 0}}
	for _, p := range buildAll(t, Key{Algo: Ring, N: 4, Channels: 3, Order: order}) {
		for c, steps := range p.Steps {
			for _, s := range steps {
				if want := next[c%2][p.Rank]; s.Out.Used && s.Out.Peer != want {
					t.Errorf("channel %d: rank %d writes to rank %d, the next is %d", c, p.Rank, s.Out.Peer, want)
				}
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
	if _, err := NewOrder(); err == nil {
		t.Error("an order without rings was taken")
	}
	if _, err := NewOrder([]int{1, 0}, []int{0, 1, 2}); err == nil {
		t.Error("rings of 2 and 3 ranks were taken")
	}
	order, _ := NewOrder([]int{1, 0})
	if _, err := Build(Key{N: 3, Channels: 1, Order: order}); err == nil {
		t.Error("an order of 2 ranks was taken for 3")
	}
}
