package proto

import (
	"fmt"
	"math"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// Valid says what is wrong with an operation before any rank moves data for it: shape, missing buffers, and buffers that overlap
// otherwise than in the in-place form of the function.
func (op *Op) Valid() error {
	if op.N < 1 || op.Rank < 0 || op.Rank >= op.N || op.Root < 0 || op.Root >= op.N {
		return fmt.Errorf("%s: rank %d and root %d do not exist among %d ranks", op.Func, op.Rank, op.Root, op.N)
	}
	if !op.Func.Valid() || op.Func == coll.Send || op.Func == coll.Recv {
		return fmt.Errorf("%s is not a collective operation", op.Func)
	}
	if op.Func.Reduces() && !op.Red.Takes(op.Type) {
		return fmt.Errorf("%s: %s is not defined for elements of type %s", op.Func, op.Red, op.Type)
	}
	if err := op.validCounts(); err != nil {
		return err
	}
	size := op.Type.Size()
	send, recv := op.reach(SendBuf)*size, op.reach(RecvBuf)*size
	switch {
	case send > 0 && op.Send == 0:
		return fmt.Errorf("%s: the send buffer is NULL", op.Func)
	case recv > 0 && op.Recv == 0:
		return fmt.Errorf("%s: the receive buffer is NULL", op.Func)
	case uint64(op.Send)+send < send || uint64(op.Recv)+recv < recv:
		return fmt.Errorf("%s: a buffer of %d bytes goes past the end of the address space", op.Func, max(send, recv))
	}
	return op.validOverlap(send, recv)
}

// validCounts makes sure that no offset in bytes overflows.
func (op *Op) validCounts() error {
	limit := uint64(math.MaxInt64) / op.Type.Size()
	if op.Count > limit/uint64(op.N) {
		return fmt.Errorf("%s: %d elements of %s for each of %d ranks are more than an address space holds", op.Func, op.Count, op.Type, op.N)
	}
	switch op.Func {
	case coll.AlltoAllV:
		if err := op.validShares("send", op.SendCounts, op.SendDispls, limit); err != nil {
			return err
		}
		if err := op.validShares("receive", op.RecvCounts, op.RecvDispls, limit); err != nil {
			return err
		}
		if s, r := op.SendCounts[op.Rank], op.RecvCounts[op.Rank]; s != r {
			return fmt.Errorf("%s: rank %d sends itself %d elements and receives %d from itself", op.Func, op.Rank, s, r)
		}
	case coll.AllGatherV, coll.ReduceScatterV:
		return op.validShares("receive", op.RecvCounts, op.RecvDispls, limit)
	}
	return nil
}

func (op *Op) validShares(what string, counts, displs []uint64, limit uint64) error {
	if len(counts) != op.N || displs != nil && len(displs) != op.N {
		return fmt.Errorf("%s: %d %s counts and %d offsets for %d ranks", op.Func, len(counts), what, len(displs), op.N)
	}
	var end uint64
	for r, c := range counts {
		lo := end
		if displs != nil {
			lo = displs[r]
		}
		if lo > limit || c > limit-lo {
			return fmt.Errorf("%s: %s count %d at offset %d for rank %d is more than an address space holds", op.Func, what, c, lo, r)
		}
		end = lo + c
	}
	return nil
}

// validOverlap allows buffers that share no byte, and the in-place form.
func (op *Op) validOverlap(send, recv uint64) error {
	if send == 0 || recv == 0 || uint64(op.Send)+send <= uint64(op.Recv) || uint64(op.Recv)+recv <= uint64(op.Send) || op.inPlace() {
		return nil
	}
	form := "send == recv"
	switch op.Func {
	case coll.AllGather, coll.Gather, coll.AllGatherV, coll.Split:
		form = "send == recv + the offset of the own rank"
	case coll.ReduceScatter, coll.Scatter, coll.ReduceScatterV:
		form = "recv == send + the offset of the own rank"
	case coll.AlltoAll, coll.AlltoAllV:
		form = "not possible: give it two buffers"
	}
	return fmt.Errorf("%s on rank %d: the buffers overlap (send %#x, %d bytes, recv %#x, %d bytes) but not in place, which is %s",
		op.Func, op.Rank, op.Send, send, op.Recv, recv, form)
}

// inPlace reports whether the rank's own share lies where the result wants it.
func (op *Op) inPlace() bool {
	size := op.Type.Size()
	s, r := op.Send, op.Recv
	switch op.Func {
	case coll.AllGather, coll.Gather, coll.AllGatherV, coll.Split:
		r += device.Ptr(op.block(RecvBuf, op.Rank).lo * size)
	case coll.ReduceScatter, coll.Scatter, coll.ReduceScatterV:
		s += device.Ptr(op.block(SendBuf, op.Rank).lo * size)
	case coll.AlltoAll, coll.AlltoAllV:
		if op.N > 1 {
			return false
		}
		s += device.Ptr(op.block(SendBuf, 0).lo * size)
		r += device.Ptr(op.block(RecvBuf, 0).lo * size)
	}
	return s == r
}
