//go:build !race

package hccl_test

import (
	"testing"

	"hccl.dev/hccl"
)

// A call allocates nothing, by the one-shot path or by a plan. The other ranks make the same calls meanwhile.
func TestNoAllocations(t *testing.T) {
	const warm, counted = 20, 200
	for _, count := range []int{2, 30000} {
		var got float64
		must(t, world(t, 2), func(c *hccl.Comm) error {
			buf := make([]float32, count)
			var failed error
			call := func() { failed = first(failed, hccl.AllReduce(background, c, buf, buf, hccl.Sum)) }
			for range warm {
				call()
			}
			if c.Rank() == 0 {
				got = testing.AllocsPerRun(counted, call)
			} else {
				for range counted + 1 { // AllocsPerRun makes one call before it counts
					call()
				}
			}
			return failed
		})
		if got != 0 {
			t.Errorf("%v allocations in an all-reduce of %d elements, want 0", got, count)
		}
	}
}
