package shm

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

// Segment is one communicator's memory on one host, as one rank has it mapped. Ranks in it are counted from 0 to Size-1 in
// the order of their ranks in the communicator: methods speak of these indices, Ports of the communicator's ranks.
type Segment struct {
	layout
	base  uintptr
	fd    int // -1 once closed
	self  int
	ranks []int   // index to the communicator's rank
	index []int32 // and back; -1: not here
	peers []*Peer
	ports *Ports
	local *Local
	arena *arena // of local
	room  lent   // guarded by the arena's mu
}

// Create makes the segment for n ranks with ports on the given number of channels.
func Create(n, channels int) (*Segment, error) {
	if n < 1 || n > maxLocal || channels < 1 || channels > maxChannels {
		return nil, fmt.Errorf("a segment for %d ranks with %d channels: at most %d and %d", n, channels, maxLocal, maxChannels)
	}
	l := newLayout(n, channels)
	fd, _, err := newMemory(l.total)
	if err != nil {
		return nil, err
	}
	s, err := mapSegment(fd, l)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	if err := s.touch(0, l.bodies); err != nil { // all but mail bodies and ports, which their owners touch
		s.unmap()
		return nil, err
	}
	word64(s.base + headTotal).Store(l.total)
	word64(s.base + headShape).Store(l.shape())
	word64(s.base + headMagic).Store(segmentMagic)
	return s, nil
}

// Map maps a segment that another rank created, by the descriptor it offered, which belongs to the segment from here on.
func Map(fd, n, channels int) (*Segment, error) {
	l := newLayout(n, channels)
	size, err := checkMemory(fd, fellBack())
	if err == nil && size != l.total {
		err = fmt.Errorf("a segment of %d bytes where %d ranks with %d channels need %d", size, n, channels, l.total)
	}
	var s *Segment
	if err == nil {
		s, err = mapSegment(fd, l)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	if word64(s.base+headMagic).Load() != segmentMagic || word64(s.base+headShape).Load() != l.shape() {
		s.unmap()
		return nil, errors.New("a segment of another build of the library")
	}
	return s, nil
}

func (l *layout) shape() uint64 { return segmentVersion | uint64(l.n)<<16 | uint64(l.channels)<<32 }

func mapSegment(fd int, l layout) (*Segment, error) {
	base, err := mapShared(fd, l.total)
	if err != nil {
		return nil, fmt.Errorf("mapping a segment of %d KiB: %w", l.total>>10, err)
	}
	return &Segment{layout: l, base: base, fd: keep(fd)}, nil
}

// touch gives a range its pages, so that a full memory is an error now and no fault later.
func (s *Segment) touch(off, n uint64) error {
	from, to := off&^(pageSize-1), (off+n+pageSize-1)&^(pageSize-1)
	err := advise(s.base+uintptr(from), to-from, unix.MADV_POPULATE_WRITE)
	if err == unix.EINVAL && s.fd >= 0 { // before Linux 5.14; CloseFD has kept the descriptor for this
		return commit(s.fd, from, to-from)
	}
	if err == unix.EFAULT { // madvise's word for what would have been a SIGBUS
		err = unix.ENOSPC
	}
	if err != nil {
		return fmt.Errorf("%d KiB of shared memory for a segment: %w", (to-from)>>10, err)
	}
	return nil
}

// FD is the descriptor to offer to the other ranks.
func (s *Segment) FD() int { return s.fd }

// CloseFD is called when all ranks have the segment: no communicator keeps a descriptor for its memory, where the system can give
// pages to a mapping without one.
func (s *Segment) CloseFD() {
	if s.fd >= 0 && advise(s.base, headSize, unix.MADV_POPULATE_WRITE) != unix.EINVAL {
		closeKept(s.fd)
		s.fd = -1
	}
}

// Join makes the caller the rank with index self. ranks[i] is the communicator's rank of index i and peers[i] its process; the
// segment releases the peers when it is closed, unless Join has failed. The rank's state becomes Live.
func (s *Segment) Join(self int, ranks []int, peers []*Peer) error {
	if len(ranks) != s.n || len(peers) != s.n || self < 0 || self >= s.n {
		return fmt.Errorf("joining a segment of %d ranks as %d with %d ranks and %d processes", s.n, self, len(ranks), len(peers))
	}
	l, err := Open()
	if err == nil {
		err = s.touch(s.bodies+uint64(self)*mailGens*mailBody, mailGens*mailBody)
	}
	if err != nil {
		return err
	}
	s.self, s.ranks, s.peers, s.local, s.arena = self, ranks, peers, l, l.arena
	s.index = indices(ranks)
	s.ports = newPorts(s)
	s.SetState(Live)
	return nil
}

func indices(ranks []int) []int32 {
	top := -1
	for _, r := range ranks {
		top = max(top, r)
	}
	index := make([]int32, top+1)
	for i := range index {
		index[i] = -1
	}
	for i, r := range ranks {
		index[r] = int32(i)
	}
	return index
}

// Size is the number of ranks in the segment.
func (s *Segment) Size() int { return s.n }

// Self is the own index.
func (s *Segment) Self() int { return s.self }

// Peer is the process of the rank with index i.
func (s *Segment) Peer(i int) *Peer { return s.peers[i] }

// Rank is the communicator's rank of index i.
func (s *Segment) Rank(i int) int { return s.ranks[i] }

// Index is the index of a communicator's rank, -1 where it is not on this host.
func (s *Segment) Index(rank int) int {
	if rank < 0 || rank >= len(s.index) {
		return -1
	}
	return int(s.index[rank])
}

// Ports returns the rank's ports.
func (s *Segment) Ports() *Ports { return s.ports }

// Close ends the caller's use of the segment: no thread may be in it. The own state must be Left or Aborted by now. Staging that
// others have not read stays theirs to read; with the last of it the memory is unmapped and the peers are released.
func (s *Segment) Close() {
	if s.ports == nil {
		s.unmap()
		return
	}
	if !s.arena.retire(s) {
		s.local.x.rouse()
	}
}

// unmap is the end of the segment. It takes no lock of the arena's: a peer's memory may go with it.
func (s *Segment) unmap() {
	if !unmapShared(s.base) { // a mirror's
		unmapMemory(s.base, s.total)
	}
	if s.fd >= 0 {
		closeKept(s.fd)
	}
	for _, p := range s.peers {
		if p != nil {
			p.Release()
		}
	}
	s.base, s.fd, s.peers = 0, -1, nil
}

// Area is a part of a segment that shm/fast uses; its layout is that of layout.go.
type Area uint8

// The areas.
const (
	Blocks Area = iota
	MailHeads
	MailBodies
	Shots
	Boards
)

// Area is the address of a part.
func (s *Segment) Area(a Area) device.Ptr {
	off := [...]uint64{Blocks: headSize, MailHeads: s.heads, MailBodies: s.bodies, Shots: s.shots, Boards: s.boards}[a]
	return device.Ptr(s.base + uintptr(off))
}

// Bells is the address of the bells of rank i's process, MaxBells lines.
func (s *Segment) Bells(i int) device.Ptr { return device.Ptr(s.peers[i].bells) }
