package shm

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Mirror makes a segment that only this rank sees, for a communicator whose ranks do not share memory: what the others would post
// is filled in by MirrorHeader and MirrorState from what they tell over the network. It has no mail, no ports and no processes.
func Mirror(self, n int) (*Segment, error) {
	if n < 1 || n > maxLocal || self < 0 || self >= n {
		return nil, fmt.Errorf("a mirror for rank %d of %d: at most %d ranks", self, n, maxLocal)
	}
	l := newLayout(n, 1)
	l.total = l.bodies // what lies behind is never touched
	p, _, errno := unix.Syscall6(unix.SYS_MMAP, 0, uintptr(l.total), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE, ^uintptr(0), 0)
	if errno != 0 {
		return nil, fmt.Errorf("%d KiB of memory for a communicator: %w", l.total>>10, errno)
	}
	s := &Segment{layout: l, base: p, fd: -1, self: self, ranks: make([]int, n), peers: make([]*Peer, n)}
	for i := range n {
		s.ranks[i] = i
	}
	s.index = indices(s.ranks)
	s.SetState(Live)
	return s, nil
}

// Shared reports whether other ranks see the segment too: it is no Mirror.
func (s *Segment) Shared() bool { return s.ports != nil }

// MirrorHeader notes what rank i has told of an operation. One thread at a time may do so for a rank.
func (s *Segment) MirrorHeader(i int, h *Header) {
	line := int(h.Seq % boardLen)
	p := postAt(s.base + uintptr(s.boards) + uintptr(i)*boardSize + uintptr(line)*lineSize)
	p.stamp.Store(0)
	for k, w := range pack(h) {
		p.header[k].Store(w)
	}
	p.stamp.Store(h.Seq + 1)
}

// MirrorState notes what rank i has told of itself.
func (s *Segment) MirrorState(i int, st State) { word32(s.block(i) + blockState).Store(uint32(st)) }
