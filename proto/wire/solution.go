package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Solution is what one rank has found for all: rings packed into the links of each kind of host, and how many channels go by each order
// that these join to. Who gets it verifies it; here only its form is checked.
type Solution struct {
	None     string // why there are no rings; "": there are
	Width    float64
	Orders   [32]byte
	Micros   uint64 // how long it took to find
	Counts   []uint16
	Packings []Packing
}

// Packing is rings in a kind of host.
type Packing struct {
	Bus, Bound float64 // GB/s
	Rings      []PackedRing
}

// PackedRing passes GPUs in segments, each from port In to port Out; -1 both where it stays inside.
type PackedRing struct {
	Weight   float64
	Segments []Segment
}

// Segment is a stretch of a ring over GPUs of one host.
type Segment struct {
	In, Out int16
	GPUs    []uint16
}

const maxPackings = 4096 // each host may be of its own kind

// Append appends s's encoding to b.
func (s *Solution) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(appendText(le.AppendUint16(b, Version), s.None), math.Float64bits(s.Width))
	b = le.AppendUint64(append(b, s.Orders[:]...), s.Micros)
	b = le.AppendUint16(b, uint16(len(s.Counts)))
	for _, n := range s.Counts {
		b = le.AppendUint16(b, n)
	}
	b = le.AppendUint16(b, uint16(len(s.Packings)))
	for _, p := range s.Packings {
		b = le.AppendUint64(le.AppendUint64(b, math.Float64bits(p.Bus)), math.Float64bits(p.Bound))
		b = le.AppendUint16(b, uint16(len(p.Rings)))
		for _, r := range p.Rings {
			b = le.AppendUint16(le.AppendUint64(b, math.Float64bits(r.Weight)), uint16(len(r.Segments)))
			for _, g := range r.Segments {
				b = g.append(b)
			}
		}
	}
	return b
}

func (g *Segment) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint16(le.AppendUint16(le.AppendUint16(b, uint16(g.In)), uint16(g.Out)), uint16(len(g.GPUs)))
	for _, n := range g.GPUs {
		b = le.AppendUint16(b, n)
	}
	return b
}

// Decode reads what Append wrote.
func (s *Solution) Decode(b []byte) error {
	r := reader{b: b}
	if v := r.u16(); r.err == nil && v != Version {
		return fmt.Errorf("wire version %d, ours is %d", v, Version)
	}
	*s = Solution{None: r.text(), Width: r.float()}
	copy(s.Orders[:], r.take(32))
	s.Micros = r.u64()
	for range r.items(maxPackings) {
		s.Counts = append(s.Counts, r.u16())
	}
	for range r.items(maxPackings) {
		p := Packing{Bus: r.float(), Bound: r.float()}
		for range r.items(maxItems) {
			p.Rings = append(p.Rings, r.packedRing())
		}
		if s.Packings = append(s.Packings, p); r.err != nil {
			return r.err
		}
	}
	if r.err == nil && len(r.b) != 0 {
		return fmt.Errorf("it has %d bytes too many", len(r.b))
	}
	return r.err
}

func (r *reader) packedRing() PackedRing {
	ring := PackedRing{Weight: r.float()}
	for range r.items(maxItems) {
		g := Segment{In: int16(r.u16()), Out: int16(r.u16())}
		for range r.items(maxDevs) {
			g.GPUs = append(g.GPUs, r.u16())
		}
		if ring.Segments = append(ring.Segments, g); r.err != nil {
			break
		}
	}
	return ring
}

// float is a number; one that is none is refused.
func (r *reader) float() float64 {
	v := math.Float64frombits(r.u64())
	if r.err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
		r.err = fmt.Errorf("a peer's bandwidth of %g", v)
	}
	return v
}
