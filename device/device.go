// Package device is memory, queues and arithmetic on one kind of processor. It knows no rank, plan or link.
//
// The layers above never touch a user's memory: they fill Cmds, Submit them to a Queue and poll the Fence that comes back. On
// host memory (package device/host) Submit runs C kernels at once and the Fence is done at return; a device with its own command
// processor fits the same interface without a change in core or proto.
package device

import (
	"sync/atomic"

	"hccl.dev/hccl/internal/coll"
)

// Ptr is an address for a device. It is an integer so that no other package can dereference it.
type Ptr uintptr

// Kind says what an address is.
type Kind uint8

const (
	Host    Kind = iota // pageable, the CPU may touch it
	Pinned              // page-locked host memory, a device may address it
	Device              // on a device; the CPU must not touch it
	Managed             // migrates: never a word, never for a NIC
)

// Share is a set of ways by which another process can open an allocation.
type Share uint8

const (
	ShareMemfd Share = 1 << iota
	ShareIPC
	ShareFD
	ShareFabric
)

// Place answers "what is this address?". ID changes when the range is freed and allocated again.
type Place struct {
	Kind     Kind
	Dev      int32 // ordinal in this process, -1: none
	Base     Ptr
	Size, ID uint64
	Share    Share
	NIC      bool // a NIC can be told of it
}

// Word is a cell that the CPU, this device and other ranks of the host can read and write.
type Word struct {
	CPU *atomic.Uint64
	Dev Ptr
}

// Fence is done when its word has reached V. It costs one load and never calls a driver; the zero Fence is done.
type Fence struct {
	W *Word
	V uint64
}

// Done reports whether the work before the fence has ended.
func (f Fence) Done() bool { return f.W == nil || int64(f.W.CPU.Load()-f.V) >= 0 }

// Op is what a Cmd does.
type Op uint8

const (
	Copy   Op = iota // N elements of Src[0] to every Dst, scaled where Scaled is set
	Reduce           // Init (if any) and Src[0..NSrc-1], in this order, to every Dst
)

// MaxSrc is the largest number of sources of one Reduce; longer sums go on from Init.
const MaxSrc = 64

// Cmd is one thing a queue does after the one before it. A slice of Cmds is one crossing into C.
//
// A Reduce accumulates in Acc: acc = Init (or Src[0]); acc = acc (Red) Src[k] ...; a mean is a sum that is divided. When DstType
// is not Acc, the result is finished (Avg: divided by Div, integers towards zero) and rounded once to DstType; when DstType is Acc
// and differs from SrcType it is a partial sum to be passed on as Init, and not divided. Of a type that is its own accumulator
// (float32, float64) a mean is divided unless Div is 0: that makes it a partial sum.
//
// Types that go together: SrcType and DstType are each Acc itself or a type whose Accumulator it is, so partial sums may be sources.
// A Copy looks at SrcType alone and moves bits unless it scales.
//
// Addresses may have any alignment. A destination may be exactly a source, or Init where the types have one size; otherwise it must
// not overlap one. docs/numerics.md says what the numbers are.
type Cmd struct {
	Op      Op
	Red     coll.RedOp
	SrcType coll.DataType
	Acc     coll.DataType
	DstType coll.DataType
	NSrc    uint8
	NDst    uint8
	Scaled  int8   // index of the source whose elements are multiplied by Scale and rounded to SrcType first; -1: none
	Stream  bool   // Dst[0] is large and will not be read soon: write it around the caches
	Shared  bool   // the last of Dst is memory that another processor has read: a copy asks for its lines ahead of the stores
	N       uint64 // elements
	Scale   uint64 // PreMulSum factor, bits of SrcType
	Div     uint64 // Avg: number of ranks, below 1<<31; 0: the sum is left as it is
	Init    Ptr    // partial sum of type Acc to start from; 0: none
	Dst     [2]Ptr // where the result goes
	Src     [MaxSrc]Ptr
}

// Accumulator is the type in which a reduction of elements of type t is held: float32 for the narrow floats, 64 bits for the mean
// of small integers and 128 for that of the 64-bit ones, else t itself.
func Accumulator(t coll.DataType, red coll.RedOp) coll.DataType {
	switch {
	case t.IsNarrow():
		return coll.Float32
	case red != coll.Avg || t.IsFloat():
		return t
	}
	switch t {
	case coll.Int8, coll.Int16, coll.Int32:
		return coll.Int64
	case coll.Uint8, coll.Uint16, coll.Uint32:
		return coll.Uint64
	case coll.Int64:
		return coll.Int128
	}
	return coll.Uint128
}

// Queue is an ordered place to put work: a user's stream, a worker on it, or the calling thread.
type Queue interface {
	// Submit starts cmds in order. It does not block on other ranks and does not keep cmds.
	Submit(cmds []Cmd) (Fence, error)
	// StreamFrom is the size in bytes of a result from which on it is better written around the caches (Cmd.Stream).
	StreamFrom() uint64
}
