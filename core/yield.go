package core

import (
	"runtime"
	"sync/atomic"

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
