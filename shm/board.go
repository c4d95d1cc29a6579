package shm

import "hccl.dev/hccl/internal/coll"

// A board is a rank's last 64 headers. Only the rank writes it (shm/fast does); anyone reads. A line is read between two looks at
// its stamp: the writer clears the stamp, writes, and sets it.
//
// Six words of a line, packed: seq; lane | root<<32; func, type, red, flags; count; extra; hash.

// Header returns what rank i posted as number seq of a lane, if it is among its last 64.
func (s *Segment) Header(i int, lane uint32, seq uint64) (Header, bool) {
	if s.Shared() && s.blank(i, 0) {
		return Header{}, false // lines of a board that is no mirror are filled in their order: the rank has posted nothing yet
	}
	for k := range boardLen { // lane 0 numbers from 0 and is most often alone: its header is in the first line that is tried
		line := int(seq+uint64(k)) % boardLen
		if s.line(i, line).header[0].Load() != seq {
			continue // most are of others
		}
		if h, stamp := s.posted(i, line); stamp != 0 && h.Seq == seq && h.Lane == lane {
			return h, true
		}
	}
	return Header{}, false
}

// Last returns the header that rank i posted last.
func (s *Segment) Last(i int) (Header, bool) {
	var last Header
	var top uint64
	for line := range boardLen {
		if h, stamp := s.posted(i, line); stamp > top {
			last, top = h, stamp
		}
	}
	return last, top != 0
}

// blank reports whether a line was never written, or is being written.
func (s *Segment) blank(i, line int) bool { return s.line(i, line).stamp.Load() == 0 }

func (s *Segment) line(i, line int) *post {
	return postAt(s.base + uintptr(s.boards) + uintptr(i)*boardSize + uintptr(line)*lineSize)
}

// posted reads a line; stamp 0: there is nothing, or it is being written.
func (s *Segment) posted(i, line int) (Header, uint64) {
	p := s.line(i, line)
	stamp := p.stamp.Load()
	var w [6]uint64
	for k := range w {
		w[k] = p.header[k].Load()
	}
	if p.stamp.Load() != stamp {
		return Header{}, 0
	}
	return unpack(w), stamp
}

func unpack(w [6]uint64) Header {
	return Header{Seq: w[0], Lane: uint32(w[1]), Root: int32(w[1] >> 32), Func: coll.Func(w[2]), Type: coll.DataType(w[2] >> 8),
		Red: coll.RedOp(w[2] >> 16), Flags: uint8(w[2] >> 24), Count: w[3], Extra: w[4]}
}

func pack(h *Header) [6]uint64 {
	return [6]uint64{h.Seq, uint64(h.Lane) | uint64(uint32(h.Root))<<32,
		uint64(h.Func) | uint64(h.Type)<<8 | uint64(h.Red)<<16 | uint64(h.Flags)<<24, h.Count, h.Extra, h.Hash()}
}

// The fault record's word goes from nothing to being written to written, once.
const (
	faultNone = iota
	faultWriting
	faultWritten
)

// SetFault writes the fault record if there is none yet, raises WhyFault for all ranks, and reports whether it was the first.
func (s *Segment) SetFault(f Fault) bool {
	state := word32(s.base + faultState)
	first := state.CompareAndSwap(faultNone, faultWriting)
	if first {
		word32(s.base + faultRanks).Store(uint32(f.Ranks[0]))
		word32(s.base + faultRanks + 4).Store(uint32(f.Ranks[1]))
		for k := range f.Headers {
			for j, w := range pack(&f.Headers[k]) {
				word64(s.base + faultLines + uintptr(k*48+j*8)).Store(w)
			}
		}
		state.Store(faultWritten)
	}
	s.RaiseAll(WhyFault)
	return first
}

// Fault returns the fault record. A rank that died while it wrote one leaves none, but its death.
func (s *Segment) Fault() (Fault, bool) {
	var f Fault
	if word32(s.base+faultState).Load() != faultWritten {
		return f, false
	}
	for k := range f.Headers {
		f.Ranks[k] = int(word32(s.base + faultRanks + uintptr(4*k)).Load())
		var w [6]uint64
		for j := range w {
			w[j] = word64(s.base + faultLines + uintptr(k*48+j*8)).Load()
		}
		f.Headers[k] = unpack(w)
	}
	return f, true
}
