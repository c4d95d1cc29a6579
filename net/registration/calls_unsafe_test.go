package registration

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

// The calls of a program, by address.

func call(number uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, e := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if e != 0 {
		return r, e
	}
	return r, nil
}

func mmap(p device.Ptr, n uint64, flags, fd int) error {
	if flags&unix.MAP_FIXED_NOREPLACE == 0 {
		flags |= unix.MAP_FIXED
	}
	_, err := call(unix.SYS_MMAP, uintptr(p), uintptr(n), unix.PROT_READ|unix.PROT_WRITE, uintptr(flags), uintptr(fd), 0)
	return err
}

func munmap(p device.Ptr, n uint64) error {
	_, err := call(unix.SYS_MUNMAP, uintptr(p), uintptr(n))
	return err
}

func madvise(p device.Ptr, n uint64, advice int) error {
	_, err := call(unix.SYS_MADVISE, uintptr(p), uintptr(n), uintptr(advice))
	return err
}

func mprotect(p device.Ptr, n uint64) error {
	_, err := call(unix.SYS_MPROTECT, uintptr(p), uintptr(n), unix.PROT_READ)
	return err
}

func mremap(p device.Ptr, from, to uint64, flags int, target device.Ptr) error {
	moved, err := call(unix.SYS_MREMAP, uintptr(p), uintptr(from), uintptr(to), uintptr(flags), uintptr(target))
	if err == nil && flags&unix.MREMAP_DONTUNMAP != 0 {
		return munmap(device.Ptr(moved), to)
	}
	return err
}

func memfd(t *testing.T) int {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := unix.Ftruncate(fd, 2*someMemory); err != nil {
		t.Fatal(err)
	}
	return fd
}

func attach(t *testing.T, p device.Ptr) error {
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, someMemory, unix.IPC_CREAT|0o600)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	_, err = call(unix.SYS_SHMAT, uintptr(id), uintptr(p), 0)
	t.Cleanup(func() { _, _ = call(unix.SYS_SHMDT, uintptr(p)) })
	return err
}

// another has a second userfaultfd watch memory until the test ends.
func another(t *testing.T, s span) error {
	fd, err := open()
	if err != nil {
		return err
	}
	k := kernel{fd: int(fd)}
	t.Cleanup(func() { _ = unix.Close(k.fd) })
	api := struct{ api, features, ioctls uint64 }{apiVersion, 0, 0}
	if err := k.ioctl(ioctlAPI, unsafe.Pointer(&api)); err != nil {
		return err
	}
	return k.watch(s)
}
