package tcp

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// baton lets one thread at a time work on a socket and lets nobody wait for it. Who finds it taken leaves word and goes on; the
// holder then looks once more before it lets go, so nothing that was queued before a failed take is forgotten.
//
//	if b.take() {
//		for more := true; more; more = !b.pass() {
//			work()
//		}
//	}
type baton struct{ n atomic.Int32 }

// shut is far below any number of takes that can be under way at once.
const shut = -1 << 30

func (b *baton) take() bool { return b.n.Add(1) == 1 }

// pass lets go and reports true, or reports false: somebody left word since the last turn, the holder works once more. A word
// that is lost in Store came before the turn that follows, which therefore sees what it announced.
func (b *baton) pass() bool {
	if b.n.CompareAndSwap(1, 0) {
		return true
	}
	b.n.Store(1)
	return false
}

// try takes the baton if nobody has it, and leaves no word: for who will look again anyway.
func (b *baton) try() bool { return b.n.CompareAndSwap(0, 1) }

// wait takes the baton as soon as nobody has it. The holder may be anybody but the caller.
func (b *baton) wait() {
	for !b.try() {
		yield()
	}
}

// close waits for the holder and keeps the baton for ever: no take succeeds any more.
func (b *baton) close() {
	for !b.n.CompareAndSwap(0, shut) {
		yield()
	}
}

// yield lets another thread run. It is not inlined: its stack check is where the collector, which the holder may wait for, can
// stop the loop above.
//
//go:noinline
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
