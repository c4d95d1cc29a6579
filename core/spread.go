package core

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/shm"
)

// Where ranks outnumber the processors an operation takes as long as the processor that most of them are on. The kernel spreads threads
// over processors that run idle. One where a rank waits by yielding never does, and what has run a moment ago stays where its caches are:
// three ranks on one of two processors and one on the other stay so for a tenth of a second and more, at 1.6 times the time of two and
// two (RATIONALE.md). So a rank that waits looks where the others are, and goes to a processor with fewer of them. Which processors its
// thread may use is afterwards what it was.
type spread struct {
	looks int
	next  time.Duration // since clock: when to look again
	moved time.Duration // and when it moved last
	pause time.Duration // after that move: the kernel, which knows of other programs, may have moved it back
}

const (
	spreadEach  = 8 // waits between looks at the clock
	spreadTime  = 2 * time.Millisecond
	spreadPause = 50 * time.Millisecond // at most between moves that do not last
)

// spread has the calling thread, which waits, move where that is due.
func (b *batch) spread() {
	for _, c := range b.comms {
		if seg := c.near; c.crowded && c.settings.Spread {
			if seg == nil && c.net == nil {
				seg = c.seg
			}
			if c.among.due() && seg != nil {
				c.spread(seg)
			}
		}
	}
}

// due reports whether it is time to look.
func (s *spread) due() bool {
	if s.looks++; s.looks%spreadEach != 0 {
		return false
	}
	now := time.Since(clock)
	if now < s.next {
		return false
	}
	s.next = now + spreadTime
	return true
}

func (c *Comm) spread(seg *shm.Segment) {
	here := shm.Processor()
	if here < 0 {
		return
	}
	seg.SetPlace(here)
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) != nil {
		return
	}
	there, ok := lessCrowded(seg, here, &mask)
	if !ok {
		return
	}
	s, now := &c.among, time.Since(clock)
	if now-s.moved < s.pause {
		return
	}
	if s.pause = min(2*s.pause, spreadPause); s.moved == 0 || now-s.moved > 2*spreadPause {
		s.pause = spreadTime
	}
	first := s.moved == 0
	s.moved = now
	if !moveTo(there) {
		return
	}
	seg.SetPlace(there)
	if first {
		c.log.Info(log.Init, "waits on processor %d, and no more on %d with more ranks of this host (HCCL_SPREAD=0 leaves that to the kernel)",
			there, here)
	}
}

// whereabouts is where the ranks of a host wait.
type whereabouts interface {
	Size() int
	Self() int
	Place(i int) int
}

// lessCrowded finds the processor of mask with the fewest ranks, at least two fewer than here. Of the ranks that are here the first alone
// goes: the next one looks again.
func lessCrowded(at whereabouts, here int, mask *unix.CPUSet) (there int, ok bool) {
	var ranks [maxProcessors]uint16
	for i := range at.Size() {
		switch p := at.Place(i); {
		case p == here && i < at.Self():
			return 0, false
		case p >= 0 && p < maxProcessors:
			ranks[p]++
		}
	}
	if here >= maxProcessors || ranks[here] < 2 {
		return 0, false
	}
	least := ranks[here] - 1
	for p := range maxProcessors {
		if mask.IsSet(p) && ranks[p] < least {
			there, least, ok = p, ranks[p], true
		}
	}
	return there, ok
}

// maxProcessors is what a unix.CPUSet can name.
const maxProcessors = 1024

// moveTo has the calling thread go on on that processor, and then wherever it was allowed to before.
func moveTo(processor int) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, there unix.CPUSet
	there.Set(processor)
	if unix.SchedGetaffinity(0, &before) != nil || unix.SchedSetaffinity(0, &there) != nil {
		return false
	}
	if unix.SchedSetaffinity(0, &before) != nil { // the processors that it had have been taken meanwhile: any
		before.Fill()
		_ = unix.SchedSetaffinity(0, &before)
	}
	return true
}
