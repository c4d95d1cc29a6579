// Package main is the C boundary of the core: libhccl_core.so, built with -buildmode=c-shared.
//
// The public names (nccl*, hccl*) are not here: they are plain C in capi/shim, a shared object of its own that loads this one at
// the first call that needs it. What the two know of each other is core_table.h. open.c fills that table; each of its entries is
// one export below, without logic: it turns C values into Go ones and calls package core.
//
// Every export grows the goroutine's stack first (a host's signal handler without SA_ONSTACK may interrupt Go code and then runs
// on that stack), and turns a panic into ncclInternalError: the host process outlives our bugs.
package main

/*
#include "services.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
	"unsafe"

	"hccl.dev/hccl/core"
	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/graph/gpus"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/secure"
	"hccl.dev/hccl/net/registration"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/shm"
	"hccl.dev/hccl/shm/fast"
)

// gcPercent keeps the Go heap near 1 MiB: operations allocate nothing, and memory belongs to the host.
const gcPercent = 25

// warmThreads is how many threads Go is made to start at load. It keeps those it has and would add them one by one, whenever many
// calls happen to block at once or the collector runs, for minutes: a host that counts its threads would take that for a leak.
const warmThreads = 16

func main() {} // never runs: c-shared wants it

//export hccl_core_start
func hccl_core_start() {
	makeRoom(1)
	debug.SetGCPercent(gcPercent)
	core.Library = fmt.Sprintf("HCCL %s (%s)", log.Release, C.GoString(C.hccl_core_path()))
	core.OwnThreads, core.FindGPUs, core.GivenKey = true, gpus.Find, givenKey
	core.MakerStrangers = func() uint64 { return uint64(C.hccl_core_strangers()) }
	shm.Descriptors, boot.FDs, tcp.FDs, log.FDs, host.FDs, registration.FDs = keeper{}, keeper{}, keeper{}, keeper{}, keeper{}, keeper{}
	warm()
	openPoller()
}

// givenKey is what ncclSetEncryption was given, nil: nothing.
func givenKey() []byte {
	b := make([]byte, secure.MaxKey)
	n := C.hccl_core_take_key((*C.uchar)(&b[0]), C.size_t(len(b)))
	if n == 0 {
		return nil
	}
	return b[:n]
}

// openPoller has Go open the descriptors of its poller, as the first timer does. Where it cannot it ends the process; now the shim
// has just made sure that there are some to be had.
func openPoller() { time.NewTimer(time.Hour).Stop() }

// warm has warmThreads goroutines hold a thread each at the same moment, which is then on time: only Go's monitor is to be late.
func warm() {
	var up sync.WaitGroup
	release := make(chan struct{})
	for range warmThreads {
		up.Add(1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			core.OnTime()
			up.Done()
			<-release
		}()
	}
	up.Wait()
	close(release)
}

// keeper tells the shim of the descriptors that a forked child must close.
type keeper struct{}

func (keeper) Opened(fd int) { C.hccl_core_fd_opened(C.int(fd)) }
func (keeper) Closed(fd int) { C.hccl_core_fd_closed(C.int(fd)) }

// handle is the shim's struct of a communicator.
type handle struct{ c *C.struct_ncclComm }

func (h handle) Ready(rank, n int, hot *fast.Hot) {
	var path unsafe.Pointer
	if hot != nil {
		path = hot.Ptr()
	}
	C.hccl_core_ready(h.c, C.int(rank), C.int(n), path)
}

func (h handle) Failed(text string) {
	s := C.CString(text)
	C.hccl_core_error(h.c, s, 1)
	C.free(unsafe.Pointer(s))
}

// never is false; the compiler does not know.
var never bool

// growStack leaves at least 96 KiB of stack, which the goroutine keeps: the function's prologue asks for the frame, and the array
// itself stands in a branch that is not taken, so that nothing is zeroed.
//
//go:noinline
func growStack() byte {
	if !never {
		return 0
	}
	var room [96 << 10]byte
	fill(&room)
	return room[len(room)/2]
}

//go:noinline
func fill(room *[96 << 10]byte) {
	for i := range room {
		room[i] = byte(i)
	}
}

// guard turns a panic of an export into its result.
func guard(res *C.int) {
	if p := recover(); p != nil {
		log.Warn("a defect in HCCL, please report it: %v\n%s", p, debug.Stack())
		*res = report(nil, &core.Error{Result: core.InternalError, Text: fmt.Sprintf("a defect in HCCL: %v", p)})
	}
}

// report keeps err's text for ncclGetLastError of the calling thread, and of comm if there is one, and returns its result.
func report(comm *C.struct_ncclComm, err error) C.int {
	if err == nil {
		return C.int(core.Success)
	}
	res := core.ResultOf(err)
	if res != core.InProgress {
		s := C.CString(err.Error())
		C.hccl_core_error(comm, s, 0)
		C.free(unsafe.Pointer(s))
	}
	return C.int(res)
}

// find returns the communicator with this number; one that is gone, or not made yet, is the caller's mistake.
func find(id C.uint64_t) (*core.Comm, error) {
	if c := core.Find(uint64(id)); c != nil {
		return c, nil
	}
	return nil, &core.Error{Result: core.InvalidArgument, Text: "the communicator is gone: it was destroyed or aborted" +
		"; or it is not there yet: the group that makes it has not ended"}
}
