package host

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

// Mapping memory, and asking what is mapped. Addresses stay integers: the collector has no business with this memory.

// maxSize is more than a process can map. It keeps sums of addresses and sizes from overflowing.
const maxSize = uint64(1) << 56

// pages rounds n up to whole pages of this machine.
func pages(n uint64) uint64 {
	page := uint64(unix.Getpagesize())
	return (n + page - 1) &^ (page - 1)
}

func mapPages(size uint64, flags, fd int) (device.Ptr, error) {
	p, _, errno := unix.Syscall6(unix.SYS_MMAP, 0, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, uintptr(flags), uintptr(fd), 0)
	if errno != 0 {
		return 0, errno
	}
	return device.Ptr(p), nil
}

func unmap(p device.Ptr, size uint64) { unix.Syscall(unix.SYS_MUNMAP, uintptr(p), uintptr(size), 0) }

// mapShared maps a new sealed memfd of size bytes. A descriptor of -1: this process gets none.
func mapShared(size uint64) (device.Ptr, int) {
	fd := openMemfd()
	if fd < 0 {
		return 0, -1
	}
	if err := truncate(fd, size); err == nil {
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err == nil {
			if p, err := mapPages(size, unix.MAP_SHARED, fd); err == nil {
				return p, fd
			}
		}
	}
	unix.Close(fd)
	return 0, -1
}

// memfdCreate is a variable so that a test can refuse it, as a seccomp filter does.
var memfdCreate = unix.MemfdCreate

// openMemfd returns -1 where there is no memfd to be had. Kernels before 6.3 do not know MFD_NOEXEC_SEAL; later ones may insist.
func openMemfd() int {
	for _, exec := range []int{unix.MFD_NOEXEC_SEAL, 0} {
		if fd, err := memfdCreate("hccl-mem", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|exec); err == nil {
			return fd
		}
	}
	return -1
}

// truncate sets the size of a file. Beyond the process's limit for files the kernel would send SIGXFSZ, which ends the process.
func truncate(fd int, size uint64) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && size > limit.Cur {
		return unix.EFBIG
	}
	for {
		if err := unix.Ftruncate(fd, int64(size)); err != unix.EINTR {
			return err
		}
	}
}

// askedAtOnce is the number of pages that one question to the kernel covers; the answer is a byte for each.
const askedAtOnce = 1024

// ValidRange tells whether every page of [p, p+n) is mapped, with whatever protection. It touches none of them. Where the kernel
// does not say (mincore is forbidden, or short of memory), it is true: a suspicion is no reason to refuse a buffer.
func ValidRange(p device.Ptr, n uint64) bool {
	if n == 0 || n > maxSize || uint64(p) > maxSize {
		return false
	}
	page := uint64(unix.Getpagesize())
	var present [askedAtOnce]byte
	for at, end := uint64(p)&^(page-1), uint64(p)+n; at < end; at += askedAtOnce * page {
		size := min(askedAtOnce*page, pages(end-at))
		switch _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(at), uintptr(size), uintptr(unsafe.Pointer(&present[0]))); errno {
		case 0:
		case unix.ENOMEM, unix.EINVAL, unix.EFAULT:
			return false
		default:
			return true
		}
	}
	return true
}
