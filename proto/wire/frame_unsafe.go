package wire

import (
	"unsafe"

	"hccl.dev/hccl/device"
)

var _ [FrameSize]byte = [unsafe.Sizeof(Frame{})]byte{}

// FrameAt is the frame at the front of a slice of at least FrameSize bytes. A reader copies it before it checks it: the other end
// may still write there.
func FrameAt(p device.Ptr) *Frame { return *(**Frame)(unsafe.Pointer(&p)) }
