package main

import "testing"

func TestPlaces(t *testing.T) {
	for _, c := range []struct{ now, threads, want int }{
		{0, 1, 16}, {16, 12, 16}, {16, 13, 32}, {32, 2, 32}, {16, 64, 128}, {128, 1, 128},
	} {
		if got := places(c.now, c.threads); got != c.want {
			t.Errorf("%d places and %d threads: %d places, want %d", c.now, c.threads, got, c.want)
		}
	}
}
