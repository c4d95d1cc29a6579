package core

import (
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/shm"
)

// goProcessors is how many goroutines of a Go program run at once; 0 where calls come from C.
var goProcessors atomic.Int32

// commsHere counts the communicators of this process, as the registry does.
var commsHere atomic.Int32

// CalledByGo says that callers are goroutines, not threads from C, of which n run at once: GOMAXPROCS. A rank that waits keeps its
// place among them; where there are more ranks than places, those that it waits for may have none.
func CalledByGo(n int) { goProcessors.Store(int32(n)) }

// giveWay is how a waiting rank lets others run: other threads, and other goroutines where ranks outnumber the places. Elsewhere Go's
// scheduler is not asked: it wakes threads, and on a thread from C that costs 10 us.
func giveWay() {
	if n := goProcessors.Load(); n > 0 && commsHere.Load() > n {
		runtime.Gosched()
	}
	shm.Yield()
}

const (
	late   = 4000000 // ns: how late timers of the thread that loads the core may fire, and of those that inherit it; see the shim's core.c
	onTime = 50000   // Linux's default
)

// OnTime has timers of the calling thread fire on time again, if it has inherited the lateness that is meant for Go's monitor. A
// thread that looks for a goroutine to run sleeps 3 us before it takes one that a thread on its way back to C has left, and what is
// queued on a stream would begin milliseconds late.
func OnTime() {
	if slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err == nil && slack >= late {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, onTime, 0, 0, 0) // it goes on late
	}
}
