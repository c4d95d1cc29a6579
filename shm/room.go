package shm

import (
	"slices"

	"hccl.dev/hccl/device"
)

// RoomSize is the bytes of a room.
const RoomSize = 1 << 20

// lent is a room: the staging of the two-shot path that shm/fast has for two ranks: one region, lent at first use and taken back, as the
// staging of ports at rest is, when the arena runs short.
type lent struct {
	region
	give func() bool // the user lets go of it, if it is at rest; nil: there is no user any more
}

// TakeRoom lends the segment its room. give is called under the arena's lock when the room is wanted back: it must not block, and
// once it has answered true the room is gone. The offset is the room's in the arena, as peers have it mapped.
func (s *Segment) TakeRoom(give func() bool) (at device.Ptr, off uint64, err error) {
	a := s.arena
	r, err := a.alloc(RoomSize, nil)
	if err != nil {
		return 0, 0, err
	}
	a.mu.Lock()
	s.room = lent{r, give}
	a.rooms = append(a.rooms, s)
	a.mu.Unlock()
	return device.Ptr(a.base + uintptr(r.off)), r.off, nil
}

// ForgetRoom is called when the user of the room ends: it is not asked to give it back any more.
func (s *Segment) ForgetRoom() {
	s.arena.mu.Lock()
	s.room.give = nil
	s.arena.mu.Unlock()
}

// View is the memory of the process of the rank with index i, as mapped here for reading.
func (s *Segment) View(i int) (at device.Ptr, size uint64) {
	return device.Ptr(s.peers[i].view.base), s.peers[i].view.size
}

// RoomRead reports whether the other of two ranks has read all that lies in the room, or will never read again.
func (s *Segment) RoomRead() bool {
	other := 1 - s.self
	sent := word64(s.base + uintptr(s.shots) + uintptr(s.self*shotLines*lineSize) + shotSent)
	kept := word64(s.base + uintptr(s.shots) + uintptr(other*shotLines*lineSize) + shotKept)
	return sent.Load() == kept.Load() || !s.reads(other)
}

// reclaimRooms takes rooms back until no more than want bytes are in use. mu is held.
func (a *arena) reclaimRooms(want uint64) {
	for _, s := range slices.Clone(a.rooms) {
		if a.inUse <= want {
			return
		}
		if s.room.give != nil && s.room.give() {
			a.stripRoom(s)
		}
	}
}

// stripRoom puts a room back. mu is held.
func (a *arena) stripRoom(s *Segment) {
	a.put(s.room.region)
	s.room = lent{}
	a.rooms = slices.DeleteFunc(a.rooms, func(o *Segment) bool { return o == s })
}
