package graph

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		places []Place
		want   []int
	}{
		{"nothing", nil, []int{}},
		{"one host, nothing known", []Place{{0, -1, -1}, {0, -1, -1}, {0, -1, -1}}, []int{0, 1, 2}},
		{"ranks dealt out to hosts in turn", []Place{{7, 0, 0}, {9, 0, 0}, {7, 0, 0}, {9, 0, 0}}, []int{0, 2, 1, 3}},
		{"NUMA nodes, the second one first", []Place{{0, 1, 4}, {0, 0, 0}, {0, 1, 4}, {0, 0, 0}}, []int{0, 2, 1, 3}},
		{"caches within a node", []Place{{0, 0, 1}, {0, 0, 0}, {0, 0, 1}, {0, 1, 1}, {0, 0, 0}}, []int{0, 2, 1, 4, 3}},
		{"equal numbers on different hosts", []Place{{0, 0, 0}, {1, 0, 0}, {0, 0, 0}}, []int{0, 2, 1}},
	} {
		if got := Order(c.places); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestOrderCrossesOnce: of hosts dealt out at random the ring leaves and enters each once.
func TestOrderCrossesOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		places := make([]Place, 4096)
		for r := range places {
			places[r] = Place{rng.IntN(512), rng.IntN(2), rng.IntN(4)}
		}
		order, crossings := Order(places), 0
		for i, r := range order {
			if places[r].Host != places[order[(i+1)%len(order)]].Host {
				crossings++
			}
		}
		if crossings != Hosts(places) {
			t.Fatalf("the ring crosses hosts %d times, there are %d", crossings, Hosts(places))
		}
	}
}
