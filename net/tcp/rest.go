package tcp

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// restTime is how long sockets rest before the background looks after them, twice that at most: much longer than a program that calls
// again and again is away, and no time for one that computes.
const restTime = 4 * time.Millisecond

// resting is a Net's side of Rest.
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
	n := f.net
	set := n.set.Load()
	f.stand(away)
	if set == nil || n.unsent.Load() || n.leaned.Load() > 0 {
		n.unsent.Store(false)
		n.serve(f)
		return
	}
	n.rests.Add(1)
	n.rested.Store(true)
	background.remind(set.timer)
}

// remind has the watcher look at resting sockets after restTime. Who rests while it ticks already has nothing to do.
func (w *watcher) remind(timer int) {
	if !w.ticking.Load() && w.ticking.CompareAndSwap(false, true) {
		_ = unix.TimerfdSettime(timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(restTime))}, nil)
	}
}

// tick takes the sockets that have rested since the last tick to the background. list is room for them.
func (w *watcher) tick(list []*Net) []*Net {
	w.ticking.Store(false) // before it looks: who rests from here on sets the timer anew
	w.mu.Lock()
	for _, n := range w.nets {
		if n.rested.Load() {
			list = append(list, n)
		}
	}
	w.mu.Unlock()
	again := false
	for _, n := range list {
		again = !n.retire() || again
	}
	w.mu.Lock()
	if again && w.file != nil {
		w.remind(w.timer)
	}
	w.mu.Unlock()
	clear(list)
	return list[:0]
}

// retire gives the sockets to the background unless a thread was back since the last tick. A thread that is back right now is seen by
// takers, which is looked at after rested was cleared: its next Rest sets that again.
func (n *Net) retire() bool {
	if rests := n.rests.Load(); rests != n.seen {
		n.seen = rests
		return false
	}
	n.rested.Store(false)
	if n.takers.Load() == 0 {
		n.attend()
	}
	return true
}
