package hccl

import (
	"runtime"
	"unsafe"

	"hccl.dev/hccl/device"
)

// buffer is a slice without its type: what the core is told of memory.
type buffer struct {
	at unsafe.Pointer // nil for no elements
	n  int            // elements
}

func bufferOf[T Element](s []T) buffer {
	if len(s) == 0 {
		return buffer{}
	}
	return buffer{unsafe.Pointer(unsafe.SliceData(s)), len(s)}
}

// pin keeps the memory where it is until pins are given up, and returns its address. To be pinned a slice must be on the heap; the
// compiler sees that it escapes here, and so puts it there. Memory that is not Go's stays where it is anyway.
func (b buffer) pin(pins *runtime.Pinner) device.Ptr {
	if b.at != nil {
		pins.Pin(b.at)
	}
	return device.Ptr(uintptr(b.at))
}

// bitsOf is a number's bits, as the wire has them: little-endian, in the low bytes.
func bitsOf[T Element](v T) (bits uint64) {
	size := unsafe.Sizeof(v)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&bits)), size), unsafe.Slice((*byte)(unsafe.Pointer(&v)), size))
	return bits
}
