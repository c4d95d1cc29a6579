package main

/*
#include "services.h"
*/
import "C"

import (
	"math"
	"time"
	"unsafe"

	"hccl.dev/hccl/core"
	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// readCall turns the arguments of a C item into a core.Call. n is the number of ranks, for the V forms. The only argument that can
// be wrong by now is the stream, which may have been destroyed since the shim looked at it.
func readCall(it *C.struct_hccl_item, n int, c *core.Call) (err error) {
	*c = core.Call{Func: coll.Func(it._func), Type: coll.DataType(it._type), Red: coll.RedOp(it.red),
		Send: device.Ptr(uintptr(it.send)), Recv: device.Ptr(uintptr(it.recv)), Count: uint64(it.count),
		Root: int(it.root), Tag: int32(it.tag), Scale: uint64(it.scale),
		MinChannels: int(it.min_channels), MaxChannels: int(it.max_channels)}
	if it.algo != nil {
		c.Algo, c.AlgoForced = C.GoString(it.algo), it.algo_forced != 0
	}
	c.UpTo, c.Status = it.up_to != 0, (*core.Status)(unsafe.Pointer(it.status))
	c.Limit = millis(it.limit)
	c.SendCounts, c.SendDispls = counts(it.scounts, n), counts(it.sdispls, n)
	c.RecvCounts, c.RecvDispls = counts(it.rcounts, n), counts(it.rdispls, n)
	if it.stream != nil {
		c.Factor = device.Ptr(uintptr(it.factor))
		c.Stream, err = findStream(it.stream)
	}
	return err
}

// millis is a time of the C ABI, of which anything negative is none.
func millis(ms C.int64_t) time.Duration {
	if ms < 0 {
		return core.NoLimit
	}
	return time.Duration(min(int64(ms), mostMillis)) * time.Millisecond
}

// mostMillis is the longest time that can be told in nanoseconds.
const mostMillis = math.MaxInt64 / int64(time.Millisecond)

func counts(p *C.uint64_t, n int) []uint64 {
	if p == nil {
		return nil
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(p)), n)
}

func readInit(it *C.struct_hccl_item) *core.InitSpec {
	s := &core.InitSpec{ID: uint64(it.new_id), Handle: handle{it.comm}, N: int(it.nranks), Rank: int(it.rank), Device: int(it.device),
		Blocking: it.blocking != 0, Name: text(it.name)}
	for i := range int(it.nids) {
		s.IDs = append(s.IDs, C.GoBytes(unsafe.Add(it.ids, i*idBytes), idBytes))
	}
	return s
}

const idBytes = 128 // NCCL_UNIQUE_ID_BYTES

func readSplit(it *C.struct_hccl_item) *core.SplitSpec {
	s := &core.SplitSpec{ID: uint64(it.new_id), Color: int32(it.color), Key: int32(it.key), Blocking: it.blocking != 0, Name: text(it.name)}
	if it.comm != nil {
		s.Handle = handle{it.comm}
	} else {
		s.Color = min(s.Color, core.NoColor)
	}
	return s
}

func text(s *C.char) string {
	if s == nil {
		return ""
	}
	return C.GoString(s)
}

// tooEarly returns what is wrong with an item that could not be read: err, or that its communicator is made by the same group.
func tooEarly(items []C.struct_hccl_item, it *C.struct_hccl_item, err error) error {
	for k := range items {
		if items[k].kind != C.HCCL_ITEM_CALL && items[k].new_id == it.id {
			return &core.Error{Result: core.InvalidArgument,
				Text: "a call on a communicator that this very group makes: make the call after ncclGroupEnd, which makes the communicator"}
		}
	}
	return err
}

// readItem turns a C item into one for core.Enqueue.
func readItem(it *C.struct_hccl_item, out *core.Item) error {
	if it.kind == C.HCCL_ITEM_INIT {
		out.Init = readInit(it)
		return nil
	}
	c, err := find(it.id)
	if err != nil {
		return err
	}
	out.Comm = c
	if it.kind == C.HCCL_ITEM_SPLIT {
		out.Split = readSplit(it)
		return nil
	}
	out.Call = new(core.Call)
	return readCall(it, c.Size(), out.Call)
}
