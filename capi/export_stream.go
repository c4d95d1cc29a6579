package main

/*
#include "services.h"
*/
import "C"

import (
	"unsafe"

	"hccl.dev/hccl/core"
)

const numberMask = 1<<C.HCCL_HANDLE_SHIFT - 1

// toHandle makes the handle that a program holds of a stream, event or request. It is no pointer, but C takes it for one.
func toHandle(out *unsafe.Pointer, mark, number uint64) {
	*(*uint64)(unsafe.Pointer(out)) = mark<<C.HCCL_HANDLE_SHIFT | number
}

// number is what a handle with this mark stands for; 0, which is nothing's, for any other.
func number(handle unsafe.Pointer, mark uint64) uint64 {
	h := uint64(uintptr(handle))
	if h>>C.HCCL_HANDLE_SHIFT != mark {
		return 0
	}
	return h & numberMask
}

func findStream(handle unsafe.Pointer) (*core.Stream, error) {
	return known(core.FindStream(number(handle, C.HCCL_STREAM_MARK)), "stream")
}

func findEvent(handle unsafe.Pointer) (*core.Event, error) {
	return known(core.FindEvent(number(handle, C.HCCL_EVENT_MARK)), "event")
}

func known[T any](t *T, what string) (*T, error) {
	if t == nil {
		return nil, &core.Error{Result: core.InvalidArgument,
			Text: "the " + what + " was destroyed: its handle ended with that, so keep none behind it"}
	}
	return t, nil
}

// withStream and withEvent do something with what a handle stands for.
func withStream(handle unsafe.Pointer, do func(*core.Stream) error) C.int {
	s, err := findStream(handle)
	if err == nil {
		err = do(s)
	}
	return report(nil, err)
}

func withEvent(handle unsafe.Pointer, do func(*core.Event) error) C.int {
	e, err := findEvent(handle)
	if err == nil {
		err = do(e)
	}
	return report(nil, err)
}

//export hccl_core_stream_create
func hccl_core_stream_create(out *unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	toHandle(out, C.HCCL_STREAM_MARK, core.NewStream())
	return C.int(core.Success)
}

//export hccl_core_stream_known
func hccl_core_stream_known(stream unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	_, err := findStream(stream)
	return report(nil, err)
}

//export hccl_core_stream_destroy
func hccl_core_stream_destroy(stream unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return report(nil, core.DestroyStream(number(stream, C.HCCL_STREAM_MARK)))
}

//export hccl_core_stream_synchronize
func hccl_core_stream_synchronize(stream unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return withStream(stream, (*core.Stream).Synchronize)
}

//export hccl_core_stream_query
func hccl_core_stream_query(stream unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return withStream(stream, (*core.Stream).Query)
}

//export hccl_core_stream_host_func
func hccl_core_stream_host_func(stream unsafe.Pointer, fn, arg unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return withStream(stream, func(s *core.Stream) error {
		s.HostFunc(func() { C.hccl_core_call(fn, arg) })
		return nil
	})
}

//export hccl_core_stream_wait_event
func hccl_core_stream_wait_event(stream, event unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return withEvent(event, func(e *core.Event) error {
		s, err := findStream(stream)
		if err == nil {
			s.WaitEvent(e)
		}
		return err
	})
}

//export hccl_core_event_create
func hccl_core_event_create(out *unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	toHandle(out, C.HCCL_EVENT_MARK, core.NewEvent())
	return C.int(core.Success)
}

//export hccl_core_event_destroy
func hccl_core_event_destroy(event unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return report(nil, core.DestroyEvent(number(event, C.HCCL_EVENT_MARK)))
}

//export hccl_core_event_record
func hccl_core_event_record(event, stream unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return withEvent(event, func(e *core.Event) (err error) {
		var s *core.Stream
		if stream != nil {
			s, err = findStream(stream)
		}
		if err == nil {
			e.Record(s)
		}
		return err
	})
}

//export hccl_core_event_synchronize
func hccl_core_event_synchronize(event unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return withEvent(event, (*core.Event).Synchronize)
}

//export hccl_core_event_query
func hccl_core_event_query(event unsafe.Pointer) (res C.int) {
	growStack()
	defer guard(&res)
	return withEvent(event, (*core.Event).Query)
}

//export hccl_core_event_elapsed
func hccl_core_event_elapsed(start, end unsafe.Pointer, milliseconds *C.float) (res C.int) {
	growStack()
	defer guard(&res)
	return withEvent(start, func(from *core.Event) error {
		to, err := findEvent(end)
		if err != nil {
			return err
		}
		d, err := to.Since(from)
		*milliseconds = C.float(d.Seconds() * 1e3)
		return err
	})
}
