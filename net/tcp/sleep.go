package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

// Sleep returns when a socket is ready or another thread has read something for this fabric (true), or after d, a millisecond at least
// (false). It is for the thread between Take and Give, after a Poll that found nothing. Only one thread sleeps so: another one is told
// false at once, and sleeps otherwise.
func (f *Fabric) Sleep(d time.Duration) (woken, slept bool) {
	n := f.net
	set := n.set.Load()
	if set == nil || !n.asleep.CompareAndSwap(nil, f) {
		return false, false
	}
	defer n.asleep.Store(nil)
	if f.rung.Load() { // before it was known that we sleep
		return true, true
	}
	fds := [2]unix.PollFd{{Fd: int32(set.ep), Events: unix.POLLIN}, {Fd: int32(set.bell), Events: unix.POLLIN}}
	ready, _ := unix.Poll(fds[:], max(1, int(d/time.Millisecond)))
	if fds[1].Revents != 0 {
		var b [8]byte
		_, _ = unix.Read(set.bell, b[:])
	}
	return ready > 0, true
}

// rouse wakes the fabric's thread, wherever it sleeps.
func (f *Fabric) rouse() {
	f.rung.Store(true)
	f.wake()
	n := f.net
	if n.asleep.Load() != f {
		return
	}
	n.mu.Lock() // the bell stays
	defer n.mu.Unlock()
	if set := n.set.Load(); set != nil {
		_, _ = unix.Write(set.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // an eventfd, so there is no SIGPIPE; full is as good as rung
	}
}
