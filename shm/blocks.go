package shm

// block is the address of rank i's block.
func (s *Segment) block(i int) uintptr { return s.base + headSize + uintptr(i)*blockSize }

// SetState says where this rank is. Peers that sleep are not woken: Raise does that.
func (s *Segment) SetState(st State) { word32(s.block(s.self) + blockState).Store(uint32(st)) }

// State is where rank i is.
func (s *Segment) State(i int) State {
	return min(State(word32(s.block(i)+blockState).Load()&stateMask), Followed)
}

// Cause is the rank on whose account rank i gave up, -1 where it has not said, and whether it was for others too. A peer wrote it.
func (s *Segment) Cause(i int) (rank int, more bool) {
	w := word32(s.block(i) + blockState).Load()
	return int(w>>causeShift) - 1, w&causeMore != 0
}

// Count is the number of ranks that are in state st or a later one.
func (s *Segment) Count(st State) int {
	n := 0
	for i := range s.n {
		if s.State(i) >= st {
			n++
		}
	}
	return n
}

// SetPlace tells the others on which processor this rank waits. The line is theirs to read before each ring, so it is written only where
// that has changed.
func (s *Segment) SetPlace(cpu int) {
	if w := word32(s.block(s.self) + blockPlace); w.Load() != uint32(cpu+1) {
		w.Store(uint32(cpu + 1))
	}
}

// Place is the processor that rank i waits on; -1: it has not waited yet.
func (s *Segment) Place(i int) int { return int(word32(s.block(i)+blockPlace).Load()) - 1 }

// Why is this rank's own word: one load of a line that hardly ever changes.
func (s *Segment) Why() Why { return Why(word32(s.block(s.self) + blockWhy).Load()) }

// Clear removes bits from the own word.
func (s *Segment) Clear(bits Why) { word32(s.block(s.self) + blockWhy).And(^uint32(bits)) }

// Raise adds bits to rank i's word and wakes its sleepers.
func (s *Segment) Raise(i int, bits Why) {
	word32(s.block(i) + blockWhy).Or(uint32(bits))
	s.Ring(i)
}

// RaiseAll adds bits to every rank's word, the own included.
func (s *Segment) RaiseAll(bits Why) {
	for i := range s.n {
		s.Raise(i, bits)
	}
}

// Ring wakes the threads that sleep on rank i. What they wait for must have been stored by an atomic store before: it is the
// full fence that Arm's counterpart needs.
func (s *Segment) Ring(i int) {
	if v := word64(s.block(i) + blockBells).Load(); v != 0 {
		s.strike(i, v)
	}
}

// strike rings the two bells that a rank's word can hold. A peer's word is checked; a bell that has been given back since is
// rung in vain, which its next owner bears.
func (s *Segment) strike(i int, v uint64) {
	base := s.bellsOf(i)
	for _, ref := range [2]uint32{uint32(v), uint32(v >> 32)} {
		if ref-1 < maxBells && base != 0 {
			strike(base + uintptr(ref-1)*lineSize)
		}
	}
}

// bellsOf is the address of the bells of rank i's process. A mirror has no processes: who sleeps on it is of this one.
func (s *Segment) bellsOf(i int) uintptr {
	if p := s.peers[i]; p != nil {
		return p.bells
	}
	return bells.base()
}
