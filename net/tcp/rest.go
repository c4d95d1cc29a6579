package tcp

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// restTime is how long sockets rest before the background looks after them, twice that at most: much longer than a program that calls
// again and again is away, and no time for one that computes.
const restTime = 4 * time.Millisecond

// resting is a fabric's side of Rest.
type resting struct {
	rests  atomic.Uint32 // calls of Rest
	rested atomic.Bool   // the background has yet to be told of the last one
	unsent atomic.Bool   // a socket was full, and somebody must send when it is not
	seen   uint32        // rests when the watcher looked last; used by its goroutine alone
}

// Rest is Give for a thread whose operation is over and that will mostly be back for the next one in a moment. To have the background
// woken takes system calls now, others when the thread is back, and between the two the peer's next slice wakes it for nothing: together
// more than a small operation takes. So the background takes over only if nobody has come back after restTime.
func (f *Fabric) Rest() {
	set := f.set.Load()
	if set == nil || f.unsent.Load() {
		f.unsent.Store(false)
		f.Give()
		return
	}
	f.taken.Store(false)
	f.rests.Add(1)
	f.rested.Store(true)
	background.remind(set.timer)
}

// remind has the watcher look at resting fabrics after restTime. Who rests while it ticks already has nothing to do.
func (w *watcher) remind(timer int) {
	if !w.ticking.Load() && w.ticking.CompareAndSwap(false, true) {
		_ = unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(restTime))}, nil)
	}
}

// tick takes the sockets of fabrics that have rested since the last tick to the background. list is room for them.
func (w *watcher) tick(list []*Fabric) []*Fabric {
	w.ticking.Store(false) // before it looks: who rests from here on sets the timer anew
	w.mu.Lock()
	for _, f := range w.fabrics {
		if f.rested.Load() {
			list = append(list, f)
		}
	}
	w.mu.Unlock()
	again := false
	for _, f := range list {
		again = !f.retire() || again
	}
	w.mu.Lock()
	if again && w.file != nil {
		w.remind(w.timer)
	}
	w.mu.Unlock()
	clear(list)
	return list[:0]
}

// retire gives the sockets to the background unless the thread was back since the last tick. A thread that is back right now is seen by
// taken, which is looked at after rested was cleared: its next Rest sets that again.
func (f *Fabric) retire() bool {
	if n := f.rests.Load(); n != f.seen {
		f.seen = n
		return false
	}
	f.rested.Store(false)
	if !f.taken.Load() {
		f.attend()
	}
	return true
}
