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
	w := &wire.Solution{None: s.None, Width: s.Width, Orders: s.Orders}
	for _, n := range s.Counts {
		w.Counts = append(w.Counts, uint16(n))
	}
	for _, p := range s.Packings {
		packing := wire.Packing{Bus: p.Bus, Bound: max(p.Bound, p.Cross)}
		for _, r := range p.Rings {
			ring := wire.PackedRing{Weight: r.Weight}
			for _, g := range r.Segments {
				segment := wire.Segment{In: int16(g.In), Out: int16(g.Out)}
				for _, gpu := range g.GPUs {
					segment.GPUs = append(segment.GPUs, uint16(gpu))
				}
				ring.Segments = append(ring.Segments, segment)
			}
			packing.Rings = append(packing.Rings, ring)
		}
		w.Packings = append(w.Packings, packing)
	}
	return w
}

func solutionOf(w *wire.Solution) *arrange.Solution {
	s := &arrange.Solution{None: w.None, Width: w.Width, Orders: w.Orders}
	for _, n := range w.Counts {
		s.Counts = append(s.Counts, int(n))
	}
	for _, p := range w.Packings {
		packing := pack.RingPacking{Bus: p.Bus, Bound: p.Bound}
		for _, r := range p.Rings {
			ring := pack.Ring{Weight: r.Weight}
			for _, g := range r.Segments {
				segment := pack.Segment{In: int(g.In), Out: int(g.Out)}
				for _, gpu := range g.GPUs {
					segment.GPUs = append(segment.GPUs, int(gpu))
				}
				ring.Segments = append(ring.Segments, segment)
			}
			packing.Rings = append(packing.Rings, ring)
		}
		s.Packings = append(s.Packings, packing)
	}
	return s
}
