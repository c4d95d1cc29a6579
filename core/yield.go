package core

import (
	"runtime"
	"sync/atomic"
	"time"

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
	turnTime = 600 * time.Microsecond // a yield that takes longer has let another program's thread have its turn
	keepTime = 20 * time.Millisecond  // for which that is taken to go on
)

// taken is until when the processors are taken by threads that compute, in nanoseconds since clock.
var (
	taken atomic.Int64
	clock = time.Now()
)

func processorsTaken() bool { return taken.Load() > int64(time.Since(clock)) }

// giveWayAside is giveWay for what runs beside the program's own threads, and reports whether it may yield again. On a processor that
// nobody else wants a yield is over at once, and quicker than sleep. Where a thread computes it is not: the kernel takes it that the
// whole turn was given away, so that the work would get hardly any of the processor until the computation is over. One that sleeps
// until a peer rings gets its share.
func giveWayAside() bool {
	from := time.Since(clock)
	giveWay()
	now := time.Since(clock)
	if now-from < turnTime {
		return true
	}
	taken.Store(int64(now + keepTime))
	return false
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
