package fast

/*
#include "hot.h"
*/
import "C"

import (
	"unsafe"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/shm"
)

// arenaLeast is the arena from which on there is a two-shot path: one with few rooms serves more communicators at a time by the staging
// of plans, which is small where messages are, and a rank that finds no room has no other way. Both ranks know the size of both arenas.
const arenaLeast = 32 * shm.RoomSize

// attachTwo opens the two-shot path of two ranks.
func (h *Hot) attachTwo(s *shm.Segment, streamFrom uint64) {
	_, own := s.View(s.Self())
	view, size := s.View(1 - s.Self())
	if min(own, size) < arenaLeast {
		return
	}
	t := &h.c.two
	t.most = C.TWO_MOST
	t.their_view, t.their_size = (*C.char)(pointer(uintptr(view))), C.uint64_t(size)
	t.shots = (*C.char)(pointer(uintptr(s.Area(shm.Shots))))
	t.stream_from = C.uint64_t(streamFrom)
}

// takeRoom borrows the room that slices lie in. The lock is held and nothing is pending.
func (h *Hot) takeRoom() error {
	at, off, err := h.seg.TakeRoom(h.giveRoom)
	if err != nil {
		return err
	}
	h.setRoom(at, off)
	return nil
}

// giveRoom lets go of the room if no operation is pending and the other rank has read what lies in it. C and the core, which hold the
// lock while they use it, find none afterwards.
func (h *Hot) giveRoom() bool {
	if !h.TryLock() {
		return false
	}
	given := h.c.pending.active == 0 && h.seg.RoomRead()
	if given {
		h.setRoom(0, 0)
	}
	h.Unlock()
	return given
}

func (h *Hot) setRoom(at device.Ptr, off uint64) {
	h.c.two.room, h.c.two.room_off = (*C.char)(pointer(uintptr(at))), C.uint64_t(off)
}

// A room and a rank's lines are what C takes them for: else this does not compile.
var _ = [1]struct{}{}[shm.RoomSize-2*C.ROOM_SLOTS*C.SLOT]

var _ = [1]struct{}{}[unsafe.Sizeof(C.struct_shots{})-3*C.LINE]
