package host

import (
	"fmt"

	"hccl.dev/hccl/device"
)

// Processor is host memory behind the interface that every device has. A process has one host memory, so it holds nothing.
type Processor struct{}

// Handles that CUDA programs pass for streams that exist without being made (cudaStreamLegacy, cudaStreamPerThread).
const (
	legacyStream    = 1
	perThreadStream = 2
)

// Stream is the calling thread for the NULL stream and for the two implicit ones. The streams that programs make of host memory are
// core's: they decide when an operation begins, and it then runs on whatever thread begins it.
func (Processor) Stream(handle uintptr) (device.Stream, error) {
	switch handle {
	case 0, legacyStream, perThreadStream:
		return inline{}, nil
	}
	return nil, fmt.Errorf("stream %#x is none of this device: pass NULL", handle)
}

// Place, Alloc, Free and ValidRange are the package's functions.
func (Processor) Place(p device.Ptr) device.Place        { return PlaceOf(p) }
func (Processor) Alloc(n uint64) (device.Place, error)   { return Alloc(n) }
func (Processor) Free(p device.Ptr) error                { return Free(p) }
func (Processor) ValidRange(p device.Ptr, n uint64) bool { return ValidRange(p, n) }

// inline is the stream of the calling thread: nothing is ever before an operation, and nothing waits behind it.
type inline struct{ Queue }

func (inline) Gate() (device.Gate, error) { return open{}, nil }

// open is a gate that nothing holds.
type open struct{}

func (open) Ready() bool  { return true }
func (open) Release()     {}
func (open) Lane() uint32 { return 0 }
