package tcp

import (
	"slices"
	"testing"

	"hccl.dev/hccl/proto"
)

// A distant rail gets what others have no room for, and all where it is much faster.
func TestDistantRailsAreSpared(t *testing.T) {
	for _, c := range []struct {
		name  string
		near  int
		rates [2]uint64
		by    int
	}{
		{"the first is near", 0, [2]uint64{}, 0},
		{"the second is near", 1, [2]uint64{}, 1},
		{"the near one was not used yet", 1, [2]uint64{100e6, 0}, 1},
		{"the distant one is faster", 1, [2]uint64{100e6, 60e6}, 1},
		{"the distant one is much faster", 1, [2]uint64{100e6, 40e6}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := railed(t, 2, 2, loopback)
			l := nodes[0].links[1]
			l.Distant(c.near, true)
			l.Distant(c.near, false) // as a rail that is laid anew
			l.Distant(1-c.near, true)
			for k, rate := range c.rates {
				l.rails[k].Load().rate.Store(rate)
			}
			out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
			for k := range 8 {
				put(t, out, content(0, k, 5000))
				nodes[1].until(t, "slice", func() bool { _, ok := get(t, in); return ok })
			}
			if by := railsOf(nodes[0]); !slices.Equal(by, slices.Repeat([]uint8{uint8(c.by)}, 8)) {
				t.Errorf("slices went by rails %v", by)
			}
			for channel := range 8 { // more than any rail holds, and nobody reads
				out := outOf(t, nodes[0], proto.Pair, 1+channel, 1)
				for k := 0; put(t, out, content(channel, k, MaxSlice)); k++ {
				}
			}
			if by := railsOf(nodes[0]); !slices.Contains(by, 0) || !slices.Contains(by, 1) {
				t.Errorf("all slices went by rail %d", by[0])
			}
		})
	}
}

// railsOf are those that took the slices for rank 1.
func railsOf(d *node) (by []uint8) {
	d.peers[1].each(func(_ proto.Kind, _ int, f *outFlow) {
		for seq := range f.taken.Load() {
			by = append(by, f.ring[seq].rail)
		}
	})
	return by
}
