package shm

// Held is what the segment can come to hold, shared by its ranks, and the staging that this process has taken of its arena for all
// its communicators, both in bytes. Pages of a segment are there once they have been written.
func (s *Segment) Held() (segment, staging, limit uint64) {
	if s.arena == nil {
		return s.total, 0, 0
	}
	s.arena.mu.Lock()
	defer s.arena.mu.Unlock()
	return s.total, s.arena.inUse, s.arena.size
}
