package main

/*
#include "services.h"
*/
import "C"

import (
	"unsafe"

	"hccl.dev/hccl/core"
	"hccl.dev/hccl/device"
	"hccl.dev/hccl/shm/fast"
)

//export hccl_core_fast
func hccl_core_fast() unsafe.Pointer { return fast.Func() }

// hccl_core_attach makes room for the thread; entering Go is what binds it to Go's runtime.
//
//export hccl_core_attach
func hccl_core_attach(threads C.int) {
	growStack()
	makeRoom(int(threads))
}

//export hccl_core_enqueue
func hccl_core_enqueue(items *C.struct_hccl_item, n C.size_t) (res C.int) {
	growStack()
	defer guard(&res)
	if n == 1 && items.kind == C.HCCL_ITEM_CALL {
		return one(items)
	}
	return several(unsafe.Slice(items, n))
}

// one is the way of every plain call: nothing is allocated.
func one(it *C.struct_hccl_item) C.int {
	c, err := find(it.id)
	if err != nil {
		return report(it.comm, err)
	}
	var call core.Call
	if err := readCall(it, c.Size(), &call); err != nil {
		return report(it.comm, err)
	}
	if err := c.Do(&call, uintptr(unsafe.Pointer(it))); err != nil {
		return report(it.comm, err)
	}
	return C.int(core.Success)
}

func several(items []C.struct_hccl_item) C.int {
	list := make([]core.Item, len(items))
	for i := range items {
		if err := readItem(&items[i], &list[i]); err != nil {
			return report(items[i].comm, tooEarly(items, &items[i], err))
		}
	}
	err := core.Enqueue(list)
	for i := range items {
		if list[i].Err != nil {
			items[i].result = C.int(core.ResultOf(list[i].Err))
		} else if err == nil || list[i].Init != nil || list[i].Split != nil {
			items[i].result = C.int(core.Success)
		}
		if e := list[i].Err; e != nil && e != err && items[i].kind == C.HCCL_ITEM_CALL {
			report(items[i].comm, e)
		}
	}
	return report(blame(items, list, err), err)
}

// blame is the handle that an error of a group belongs to, NULL if none does.
func blame(items []C.struct_hccl_item, list []core.Item, err error) *C.struct_ncclComm {
	for i := range items {
		if items[i].kind == C.HCCL_ITEM_CALL && (list[i].Err == err || list[i].Comm != nil && list[i].Comm.Failure() == err) {
			return items[i].comm
		}
	}
	return nil
}

//export hccl_core_simulate
func hccl_core_simulate(items *C.struct_hccl_item, n C.size_t, microseconds *C.float) (res C.int) {
	growStack()
	defer guard(&res)
	var total float64
	for _, it := range unsafe.Slice(items, n) {
		if it.kind != C.HCCL_ITEM_CALL {
			continue
		}
		c, err := find(it.id)
		if err != nil {
			return report(it.comm, err)
		}
		var call core.Call
		if err := readCall(&it, c.Size(), &call); err != nil {
			return report(it.comm, err)
		}
		total += c.Estimate(&call).Seconds() * 1e6
	}
	*microseconds = C.float(total)
	return C.int(core.Success)
}

//export hccl_core_finalize
func hccl_core_finalize(id C.uint64_t) (res C.int) {
	growStack()
	defer guard(&res)
	return with(id, (*core.Comm).Finalize)
}

//export hccl_core_destroy
func hccl_core_destroy(id C.uint64_t) (res C.int) {
	growStack()
	defer guard(&res)
	return with(id, (*core.Comm).Destroy)
}

//export hccl_core_abort
func hccl_core_abort(id C.uint64_t) (res C.int) {
	growStack()
	defer guard(&res)
	return with(id, (*core.Comm).Abort)
}

func with(id C.uint64_t, do func(*core.Comm) error) C.int {
	c, err := find(id)
	if err == nil {
		err = do(c)
	}
	return report(nil, err)
}

//export hccl_core_async_error
func hccl_core_async_error(id C.uint64_t, state *C.int) (res C.int) {
	growStack()
	defer guard(&res)
	c, err := find(id)
	if err != nil {
		return report(nil, err)
	}
	*state = C.int(core.ResultOf(c.AsyncError()))
	return C.int(core.Success)
}

//export hccl_core_mem_alloc
func hccl_core_mem_alloc(out *unsafe.Pointer, size C.size_t) (res C.int) {
	growStack()
	defer guard(&res)
	p, err := core.MemAlloc(uint64(size))
	*(*device.Ptr)(unsafe.Pointer(out)) = p
	return report(nil, err)
}

//export hccl_core_mem_free
func hccl_core_mem_free(p unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return report(nil, core.MemFree(device.Ptr(uintptr(p))))
}

//export hccl_core_comm_register
func hccl_core_comm_register(id C.uint64_t, p unsafe.Pointer, size C.size_t, handle *unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	c, err := find(id)
	if err != nil {
		return report(nil, err)
	}
	h, err := c.Register(device.Ptr(uintptr(p)), uint64(size))
	*(*uintptr)(unsafe.Pointer(handle)) = h
	return report(nil, err)
}

//export hccl_core_comm_deregister
func hccl_core_comm_deregister(id C.uint64_t, handle unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	c, err := find(id)
	if err != nil {
		return report(nil, err)
	}
	return report(nil, c.Deregister(uintptr(handle)))
}

//export hccl_core_comm_limit
func hccl_core_comm_limit(id C.uint64_t, set C.int64_t, get *C.int64_t) (res C.int) {
	growStack()
	defer guard(&res)
	c, err := find(id)
	switch {
	case err != nil:
	case get != nil:
		*get = C.int64_t(c.Limit().Milliseconds())
	default:
		c.SetLimit(millis(set))
	}
	return report(nil, err)
}

//export hccl_core_mem_stats
func hccl_core_mem_stats(id C.uint64_t, stat C.int, value *C.uint64_t) (res C.int) {
	growStack()
	defer guard(&res)
	if _, err := find(id); err != nil {
		return report(nil, err)
	}
	*value = 0 // the statistics are of GPU memory, of which none is held
	return C.int(core.Success)
}
