package core

import (
	"fmt"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/graph/arrange"
	"hccl.dev/hccl/graph/pack"
	"hccl.dev/hccl/proto/wire"
)

// solveRings packs rings. Tests have it lie.
var solveRings = (*arrange.Arrangement).Solve

// solution is what this rank finds for all, as it is told.
func solution(all *arrange.Arrangement) []byte {
	start := time.Now()
	s := solutionToWire(solveRings(all))
	s.Micros = uint64(time.Since(start).Microseconds())
	b := s.Append(nil)
	if len(b) > boot.MaxBlob {
		s = &wire.Solution{None: fmt.Sprintf("rings for %d kinds of hosts are %d KiB, more than the %d KiB that can be told", len(s.Packings),
			len(b)>>10, boot.MaxBlob>>10)}
		b = s.Append(nil)
	}
	return b
}

func solutionToWire(s arrange.Solution) *wire.Solution {
	w := &wire.Solution{None: s.None, Width: s.Width, Orders: s.Orders, Counts: each(s.Counts, narrow)}
	w.Packings = each(s.Packings, func(p pack.RingPacking) wire.Packing {
		return wire.Packing{Bus: p.Bus, Bound: max(p.Bound, p.Cross), Rings: each(p.Rings, func(r pack.Ring) wire.PackedRing {
			return wire.PackedRing{Weight: r.Weight, Segments: each(r.Segments, func(g pack.Segment) wire.Segment {
				return wire.Segment{In: int16(g.In), Out: int16(g.Out), GPUs: each(g.GPUs, narrow)}
			})}
		})}
	})
	return w
}

func solutionOf(w *wire.Solution) *arrange.Solution {
	s := &arrange.Solution{None: w.None, Width: w.Width, Orders: w.Orders, Counts: each(w.Counts, wide)}
	s.Packings = each(w.Packings, func(p wire.Packing) pack.RingPacking {
		return pack.RingPacking{Bus: p.Bus, Bound: p.Bound, Rings: each(p.Rings, func(r wire.PackedRing) pack.Ring {
			return pack.Ring{Weight: r.Weight, Segments: each(r.Segments, func(g wire.Segment) pack.Segment {
				return pack.Segment{In: int(g.In), Out: int(g.Out), GPUs: each(g.GPUs, wide)}
			})}
		})}
	})
	return s
}

func narrow(n int) uint16 { return uint16(n) }
func wide(n uint16) int   { return int(n) }

// each is a list of what becomes of the elements of another; nil of none.
func each[A, B any](list []A, of func(A) B) (out []B) {
	for _, v := range list {
		out = append(out, of(v))
	}
	return out
}
