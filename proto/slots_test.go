package proto

import (
	"strings"
	"testing"

	"hccl.dev/hccl/internal/coll"
)

// TestSlotsAreTight shows that a plan's number of slots is enough for chunks of many slices, and that one less is not. Where some
// ranks have nothing to pass on, fewer may do.
func TestSlotsAreTight(t *testing.T) {
	ranks := []int{2, 3, 4, 5, 8}
	if testing.Short() {
		ranks = ranks[:3]
	}
	for _, n := range ranks {
		keys(n, func(k Key) {
			plans := buildAll(t, k)
			parts := uint64(k.N * k.Channels)
			long := Shape{Count: fills(k)*parts + parts/2 + 1, Slice: 1}
			tight := 0
			for tight = 1; tight < 20; tight++ {
				long.Slots = tight
				if Check(plans, long) == nil {
					break
				}
			}
			loose := k.Func == coll.Reduce && k.Ahead > ahead                    // chunks and results share a port, never both at most
			never := loose || strings.HasSuffix(k.Func.String(), "-v") || n == 2 // some ranks have nothing to pass on
			if tight > plans[0].Slots || tight < plans[0].Slots && !never {
				t.Errorf("%+v needs %d slots, its plan says %d", k, tight, plans[0].Slots)
			}
		})
	}
}
