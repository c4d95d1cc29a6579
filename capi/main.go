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
#include "core_table.h"
void hccl_core_error(struct ncclComm* comm, const char* text);
*/
import "C"

import (
	"runtime"
	"unsafe"
)

const (
	internalError C.int = 3 // ncclInternalError
	invalidUsage  C.int = 5 // ncclInvalidUsage
)

// maxProcs is GOMAXPROCS in the host's process: it only limits threads that run Go code at once, and spinning ranks must not
// starve those that have work. It is set once, because a change stops the world.
const maxProcs = 16

var absent = C.CString("the core has no operations yet")

func main() {} // never runs: c-shared wants it

//export hccl_core_start
func hccl_core_start() {
	runtime.GOMAXPROCS(maxProcs)
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
	if recover() != nil {
		*res = internalError
	}
}

func refuse(comm *C.struct_ncclComm) C.int {
	C.hccl_core_error(comm, absent)
	return invalidUsage
}

//export hccl_core_enqueue
func hccl_core_enqueue(items *C.struct_hccl_item, n C.size_t) (res C.int) {
	growStack()
	defer guard(&res)
	if items == nil || n == 0 {
		return 0
	}
	return refuse(items.comm)
}

//export hccl_core_simulate
func hccl_core_simulate(items *C.struct_hccl_item, n C.size_t, microseconds *C.float) (res C.int) {
	growStack()
	defer guard(&res)
	return refuse(nil)
}

//export hccl_core_finalize
func hccl_core_finalize(id C.uint64_t) (res C.int) {
	growStack()
	defer guard(&res)
	return refuse(nil)
}

//export hccl_core_destroy
func hccl_core_destroy(id C.uint64_t) (res C.int) {
	growStack()
	defer guard(&res)
	return refuse(nil)
}

//export hccl_core_abort
func hccl_core_abort(id C.uint64_t) (res C.int) {
	growStack()
	defer guard(&res)
	return refuse(nil)
}

//export hccl_core_async_error
func hccl_core_async_error(id C.uint64_t, state *C.int) (res C.int) {
	growStack()
	defer guard(&res)
	return refuse(nil)
}

//export hccl_core_mem_alloc
func hccl_core_mem_alloc(out *unsafe.Pointer, size C.size_t) (res C.int) {
	growStack()
	defer guard(&res)
	return refuse(nil)
}

//export hccl_core_mem_free
func hccl_core_mem_free(p unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return refuse(nil)
}

//export hccl_core_comm_register
func hccl_core_comm_register(id C.uint64_t, p unsafe.Pointer, size C.size_t, handle *unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return refuse(nil)
}

//export hccl_core_comm_deregister
func hccl_core_comm_deregister(id C.uint64_t, handle unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return refuse(nil)
}

//export hccl_core_mem_stats
func hccl_core_mem_stats(id C.uint64_t, stat C.int, value *C.uint64_t) (res C.int) {
	growStack()
	defer guard(&res)
	return refuse(nil)
}
