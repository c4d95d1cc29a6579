package main

/*
#include "services.h"
*/
import "C"

import (
	"runtime"
	"time"
	"unsafe"

	"hccl.dev/hccl/core"
)

func findRequest(handle unsafe.Pointer) (*core.Request, error) {
	r := core.FindRequest(number(handle, C.HCCL_REQUEST_MARK))
	if r == nil {
		return nil, &core.Error{Result: core.InvalidArgument,
			Text: "the request was freed: its handle ended with hcclRequestFree, so keep none behind it"}
	}
	return r, nil
}

//export hccl_core_request_start
func hccl_core_request_start(it *C.struct_hccl_item, out *unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	c, err := find(it.id)
	if err != nil {
		return report(it.comm, err)
	}
	var call core.Call
	if err := readCall(it, c.Size(), &call); err != nil {
		return report(it.comm, err)
	}
	r, err := c.Start(&call)
	if err != nil {
		return report(it.comm, err)
	}
	toHandle(out, C.HCCL_REQUEST_MARK, core.KeepRequest(r))
	return C.int(core.Success)
}

//export hccl_core_request_wait
func hccl_core_request_wait(handles *unsafe.Pointer, n C.size_t, limit C.int64_t, index *C.size_t) (res C.int) {
	growStack()
	defer guard(&res)
	var one [1]*core.Request
	list := one[:0]
	var places []int // in the caller's list, which may have holes
	for k, h := range unsafe.Slice(handles, n) {
		if h == nil {
			continue
		}
		r, err := findRequest(h)
		if err != nil {
			return report(nil, err)
		}
		list, places = append(list, r), append(places, k)
	}
	return waitFor(list, places, millis(limit), index)
}

func waitFor(list []*core.Request, places []int, limit time.Duration, index *C.size_t) C.int {
	if index == nil {
		return report(nil, core.WaitAll(list, limit))
	}
	k, err := core.WaitAny(list, limit)
	if k >= 0 {
		*index = C.size_t(places[k])
	}
	return report(nil, err)
}

//export hccl_core_request_status
func hccl_core_request_status(handle unsafe.Pointer, status *C.struct_hccl_status) (res C.int) {
	growStack()
	defer guard(&res)
	r, err := findRequest(handle)
	if err == nil {
		err = r.Err()
	}
	if err == nil && status != nil {
		*(*core.Status)(unsafe.Pointer(status)) = r.Status()
	}
	return report(nil, err)
}

// hccl_core_request_notify has fn called on a thread of the library, whose last error is that of the request.
//
//export hccl_core_request_notify
func hccl_core_request_notify(handle unsafe.Pointer, fn, arg unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	r, err := findRequest(handle)
	if err == nil {
		err = r.Notify(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			C.hccl_core_tell(fn, handle, report(nil, r.Err()), arg)
		})
	}
	return report(nil, err)
}

//export hccl_core_request_cancel
func hccl_core_request_cancel(handle unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	r, err := findRequest(handle)
	if err == nil {
		r.Cancel()
	}
	return report(nil, err)
}

//export hccl_core_request_free
func hccl_core_request_free(handle unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	if !core.ForgetRequest(number(handle, C.HCCL_REQUEST_MARK)) {
		_, err := findRequest(nil)
		return report(nil, err)
	}
	return C.int(core.Success)
}
