package host

/*
#cgo CFLAGS: -O3 -std=c11 -Wall -Wextra -fvisibility=hidden
#cgo noescape hccl_host_run
#cgo nocallback hccl_host_run
#include "kernels.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"hccl.dev/hccl/device"
)

// Queue is the calling thread: what is submitted has happened when Submit returns. The zero value is ready for use.
type Queue struct{}

// smallCopy is the size in bytes up to which Go's own copy beats a crossing into C (about 30 ns).
const smallCopy = 4096

// Submit runs cmds in order. A command that makes no sense is an error; those before it have run, those after it have not.
func (Queue) Submit(cmds []device.Cmd) (device.Fence, error) {
	if len(cmds) == 1 && copiedHere(&cmds[0]) {
		return device.Fence{}, nil
	}
	if len(cmds) == 0 {
		return device.Fence{}, nil
	}
	bad := C.hccl_host_run((*C.struct_hccl_cmd)(unsafe.Pointer(&cmds[0])), C.int(len(cmds)))
	if bad != 0 {
		return device.Fence{}, refused(int(bad), &cmds[bad-1])
	}
	return device.Fence{}, nil
}

// copiedHere does c if it is a small copy as it stands: one destination, no scaling, nothing to be streamed.
func copiedHere(c *device.Cmd) bool {
	if c.Op != device.Copy || c.NSrc != 1 || c.NDst != 1 || c.Scaled >= 0 || c.Stream || !c.SrcType.Valid() {
		return false
	}
	n := c.N * c.SrcType.Size()
	if c.N > smallCopy || n > smallCopy {
		return false
	}
	copy(device.Bytes(c.Dst[0], n), device.Bytes(c.Src[0], n))
	return true
}

func refused(number int, c *device.Cmd) error {
	return fmt.Errorf("host memory cannot do command %d: operation %d, %v of %d sources of %v in %v into %d of %v, scaled source %d, "+
		"divisor %d", number, c.Op, c.Red, c.NSrc, c.SrcType, c.Acc, c.NDst, c.DstType, c.Scaled, c.Div)
}

// StreamFrom is known by measurement for the makers of processors; see hccl_host_stream_from.
func (Queue) StreamFrom() uint64 { return streamFrom }

var streamFrom = uint64(C.hccl_host_stream_from())

// RunFunc is the address of hccl_host_run (cmd.h), for other C code of the core, which calls it through a pointer.
func RunFunc() unsafe.Pointer { return unsafe.Pointer(C.hccl_host_run) }

// Level names the instruction set whose kernels are in use.
func Level() string { return C.GoString(C.hccl_host_kernels().name) }

// The instruction sets, from what every processor has upwards.
const (
	base   = int(C.HCCL_BASE)
	avx2   = int(C.HCCL_AVX2)
	avx512 = int(C.HCCL_AVX512)
)

// limit sets the best instruction set to be used and returns the one in use: tests compare all that the processor has.
func limit(level int) int { return int(C.hccl_host_limit(C.int(level))) }
