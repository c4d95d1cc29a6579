package proto

import (
	"math/rand/v2"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/coll"
)

// TestInAnyOrder checks the ring of every function, and the tree, with ranks shuffled, each channel in its own way, symbolically.
func TestInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	for n := 2; n <= 9; n++ {
		keys(n, func(k Key) {
			if k.Algo.direct() || k.Channels > 2 {
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

// TestSmallSumsTakeFewMessages: a small all-reduce of many ranks on few hosts sends as many messages as there are ranks, there and back,
// and few of them to other hosts. The direct forms would send one from each rank to each.
func TestSmallSumsTakeFewMessages(t *testing.T) {
	const n, hosts = 96, 4
	choice, err := Choose(&Setting{Hosts: hosts}, &Op{Func: coll.AllReduce, Type: coll.Float32, N: n, Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	all, across := 0, 0
	for _, p := range buildAll(t, Key{Func: coll.AllReduce, Algo: choice.Algo, N: n, Channels: 1}) {
		for _, s := range p.Steps[0] {
			switch {
			case s.Out.Used && s.Out.Kind == All:
				all, across = all+n-1, across+n-n/hosts
			case s.Out.Used:
				all++
				if int(s.Out.Peer)/(n/hosts) != p.Rank/(n/hosts) {
					across++
				}
			}
		}
	}
	if all != 2*(n-1) || across > 4*hosts {
		t.Errorf("%d messages, %d to other hosts; want %d, and %d at most", all, across, 2*(n-1), 4*hosts)
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
