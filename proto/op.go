package proto

import (
	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// Op is one call: what a Plan is run for. A Run keeps nothing of it after Start.
//
// Count is in elements and is what the function's C call counts: the vector of all-reduce, reduce and broadcast, one rank's
// share elsewhere. The V forms use the four slices instead (each with N entries, offsets in elements; nil offsets: packed):
//
//	all-gather-v      RecvCounts[r], RecvDispls[r]: the share of rank r in Recv
//	reduce-scatter-v  RecvCounts[r], RecvDispls[r]: the share that goes to rank r, in Send
//	all-to-all-v      SendCounts[r], SendDispls[r]: what goes to rank r, in Send; RecvCounts, RecvDispls: what comes, in Recv
type Op struct {
	Func       coll.Func
	Type       coll.DataType
	Red        coll.RedOp
	N          int
	Rank       int
	Root       int
	Count      uint64
	Send       device.Ptr
	Recv       device.Ptr
	Scale      uint64 // PreMulSum: this rank's factor, bits of Type
	SendCounts []uint64
	SendDispls []uint64
	RecvCounts []uint64
	RecvDispls []uint64
	Scratch    device.Ptr // room for partial sums, only where ScratchSize asks for it
	ScratchLen uint64     // bytes
}
