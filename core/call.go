package core

import (
	"time"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// Call is one operation that a program asks of a communicator, its arguments already checked.
type Call struct {
	Func  coll.Func
	Type  coll.DataType
	Red   coll.RedOp
	Send  device.Ptr
	Recv  device.Ptr
	Count uint64 // elements, as the call counts them
	Root  int    // root, or the peer of a message; AnySource
	Tag   int32  // of a message, not negative; a receive may take AnyTag
	Scale uint64 // PreMulSum: the factor, bits of Type

	Stream *Stream    // nil: the call returns with its result
	Factor device.Ptr // on a stream: where Scale is to be read when the operation begins; 0: it is known

	// The V forms: elements for or of each rank and their offsets in elements; nil otherwise.
	SendCounts, SendDispls, RecvCounts, RecvDispls []uint64

	Algo                     string // algorithms that this call asks for; "": choose
	AlgoForced               bool
	MinChannels, MaxChannels int // 0: choose

	UpTo   bool    // a receive takes fewer elements than Count, too
	Status *Status // of a receive: filled once a message has met it; nil: not wanted

	req *Request // whose call it is; nil: that of the batch which has the turn

	Limit time.Duration // of the whole call, from when it begins; 0: the communicator's, NoLimit: none. See limit.go
}

// What a receive may name in place of a rank and of a tag.
const (
	AnySource = -1
	AnyTag    = -1
)

// Status is what a receive has met, as the C ABI has it.
type Status struct {
	Source, Tag int32
	Bytes       uint64
}

// BarrierCall is a call that returns when all ranks have made it. The word is any of which nobody reads or writes the first byte.
func BarrierCall(word device.Ptr) Call {
	return Call{Func: coll.Barrier, Type: coll.Bool, Red: coll.Xor, Count: 1, Send: word, Recv: word}
}

// message reports whether the call is a point-to-point message, which has no number among the collectives.
func (c *Call) message() bool { return c.Func == coll.Send || c.Func == coll.Recv }
