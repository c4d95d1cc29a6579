package shm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Bell is what one thread sleeps on: a word that ringers count up, then wake. A wait goes:
//
//	TakeBell, Prepare, Arm for every segment that the thread waits on, look again at all that is waited for,
//	Sleep, Disarm for every segment, Drop.
//
// Arm publishes the bell in the rank's block and is a full fence, as is the store of whoever publishes data before it looks into
// that block: one of the two sees the other, so no ring is lost between the look and the sleep.
type Bell struct {
	addr uintptr       // of the word
	ref  uint32        // index+1 in the arena's bells: what Arm publishes; 0: own, only this process can ring
	seen uint32        // the word's value at Prepare
	own  atomic.Uint32 // the word of a bell without arena
	next *Bell         // in the pool
}

// maxBells is how many threads of a process can be woken by other processes at a time; further ones nap.
const maxBells = bellBytes / lineSize

// belfry is a pool of bells. Threads come and go, so a bell is taken for one wait.
type belfry struct {
	mu     sync.Mutex
	arena  *arena // nil until there is one
	shared *Bell  // free bells of the arena
	own    *Bell  // free bells without it
	made   uint32 // bells of the arena that exist
}

var bells belfry

// hang makes bells come from a from now on.
func (f *belfry) hang(a *arena) {
	f.mu.Lock()
	f.arena = a
	f.mu.Unlock()
}

// base is the address of this process's bells, 0 where there is no arena.
func (f *belfry) base() uintptr {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.arena == nil {
		return 0
	}
	return f.arena.base
}

// TakeBell returns a bell of the pool. It never fails: before Open it is one that only this process can ring.
func TakeBell() *Bell {
	f := &bells
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.arena == nil || f.shared == nil && f.made == maxBells {
		return f.takeOwn()
	}
	if b := f.shared; b != nil {
		f.shared, b.next = b.next, nil
		return b
	}
	b := &Bell{addr: f.arena.base + uintptr(f.made)*lineSize, ref: f.made + 1}
	f.made++
	return b
}

func (f *belfry) takeOwn() *Bell {
	if b := f.own; b != nil {
		f.own, b.next = b.next, nil
		return b
	}
	b := new(Bell)
	b.addr = wordAddress(&b.own)
	return b
}

// Drop gives the bell back. It must be disarmed.
func (b *Bell) Drop() {
	f := &bells
	f.mu.Lock()
	if b.ref != 0 {
		b.next, f.shared = f.shared, b
	} else {
		b.next, f.own = f.own, b
	}
	f.mu.Unlock()
}

// Prepare comes before the first Arm, or before the last look if there is nothing to Arm: rings from here on end the next Sleep.
func (b *Bell) Prepare() { b.seen = word32(b.addr).Load() }

// Arm makes every ring of this rank of s reach the bell. False: two threads sleep on this rank already, or the bell was taken
// before Open; the caller must look again by itself, about once a millisecond.
func (b *Bell) Arm(s *Segment) bool {
	w := word64(s.block(s.self) + blockBells)
	for b.ref != 0 {
		v := w.Load()
		shift, ok := freeHalf(v)
		if !ok {
			return false
		}
		if w.CompareAndSwap(v, v|uint64(b.ref)<<shift) {
			return true
		}
	}
	return false
}

// freeHalf finds room for one of the two bells that a rank's word holds.
func freeHalf(v uint64) (shift int, ok bool) {
	switch {
	case uint32(v) == 0:
		return 0, true
	case v>>32 == 0:
		return 32, true
	}
	return 0, false
}

// Disarm undoes Arm, also one that answered false.
func (b *Bell) Disarm(s *Segment) {
	w := word64(s.block(s.self) + blockBells)
	for b.ref != 0 {
		v := w.Load()
		n := v
		switch {
		case uint32(v) == b.ref:
			n = v &^ 0xffffffff
		case uint32(v>>32) == b.ref:
			n = v & 0xffffffff
		default:
			return
		}
		if w.CompareAndSwap(v, n) {
			return
		}
	}
}

// Sleep returns when the bell has rung since Prepare (true), or after d (false).
func (b *Bell) Sleep(d time.Duration) bool {
	end := time.Now().Add(d)
	for word32(b.addr).Load() == b.seen {
		if d <= 0 {
			return false
		}
		futexWait(b.addr, b.seen, int64(d))
		d = time.Until(end)
	}
	return true
}

// Ring wakes the thread from inside this process.
func (b *Bell) Ring() { strike(b.addr) }

// strike counts the word up, so that a sleeper that is just about to sleep does not, and wakes one that does.
func strike(addr uintptr) {
	word32(addr).Add(1)
	futexWake(addr)
}

// Yield gives the processor to another thread. It is a raw system call: Go's scheduler is not told, which would cost ten times
// as much. It is not inlined, so that a loop around it has a stack check: the collector's only way in. Otherwise a loop that waits
// for a thread which the collector has stopped would hold the collector up for ever.
//
//go:noinline
func Yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Processors is the number of processors that this process may run on.
func Processors() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil && set.Count() > 0 {
		return set.Count()
	}
	return runtime.NumCPU()
}
