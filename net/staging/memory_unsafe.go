package staging

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

// hugePage is what chunks are aligned to.
const hugePage = 2 << 20

// address is where b starts, for a device. b lies outside the Go heap.
func address(b []byte) device.Ptr { return device.Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// mapMemory maps n bytes, on whole pages, that are zero and not there before they are touched.
func mapMemory(n uint64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
}

// mapAligned maps n bytes at a border of huge pages: it maps a page more and gives the ends back.
func mapAligned(n uint64) ([]byte, error) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n+hugePage), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	front := -uintptr(p) & (hugePage - 1)
	cutOff(p, front)
	cutOff(unsafe.Add(p, front+uintptr(n)), hugePage-front)
	return unsafe.Slice((*byte)(unsafe.Add(p, front)), n), nil
}

func cutOff(p unsafe.Pointer, n uintptr) {
	if n > 0 {
		_ = unix.MunmapPtr(p, n) // costs address space if it fails
	}
}

// unmapMemory gives back what mapMemory or mapAligned returned.
func unmapMemory(b []byte) { _ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b))) }

// lockOnFault locks the pages of b as they are touched.
func lockOnFault(b []byte) error {
	_, _, e := unix.Syscall(unix.SYS_MLOCK2, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MLOCK_ONFAULT)
	if e != 0 {
		return e
	}
	return nil
}

const dontNeedLocked = 24 // MADV_DONTNEED_LOCKED, Linux 5.18

// renew gives b, whole pages, pages of zeros when it is touched next.
func renew(b []byte) error {
	err := unix.Madvise(b, unix.MADV_DONTNEED)
	if err != unix.EINVAL { // the answer for locked memory
		return err
	}
	if unix.Madvise(b, dontNeedLocked) == nil {
		return nil
	}
	if err := unix.Munlock(b); err != nil {
		return err
	}
	return unix.Madvise(b, unix.MADV_DONTNEED) // what it gets now is not locked any more
}

const preferNode = 1 // MPOL_PREFERRED of linux/mempolicy.h: other nodes where this one has no memory left

// bind has pages of b come from a NUMA node.
func bind(b []byte, node int) error {
	var mask [16]uint64 // 1024 nodes, the most that Linux is built for
	mask[node/64] = 1 << (node % 64)
	_, _, e := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), preferNode,
		uintptr(unsafe.Pointer(&mask)), uintptr(len(mask)*64), 0)
	if e != 0 {
		return os.NewSyscallError("mbind", e)
	}
	return nil
}
