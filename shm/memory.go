package shm

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	pageSize = 4096
	lineSize = 64
)

// Keeper is told of every descriptor that the package keeps beyond a call, so that a forked child can close it.
type Keeper interface {
	Opened(fd int)
	Closed(fd int)
}

// Descriptors is the Keeper in use; nil: nobody wants to know. It is set before the first call of this package.
var Descriptors Keeper

func keep(fd int) int {
	if Descriptors != nil {
		Descriptors.Opened(fd)
	}
	return fd
}

func closeKept(fd int) {
	if Descriptors != nil {
		Descriptors.Closed(fd)
	}
	unix.Close(fd)
}

// sealed is what a receiver of memory insists on: its size is for ever what it was when it was checked.
const sealed = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// newMemory makes size bytes of shareable memory without a name. Pages come with commit. The reason tells why it is a file in
// /dev/shm and not a memfd.
func newMemory(size uint64) (fd int, reason string, err error) {
	fd, err = newMemfd(size)
	if err == nil {
		return fd, "", nil
	}
	reason = fmt.Sprintf("memfd_create: %v", err)
	fd, err = newFile("/dev/shm", size)
	if err != nil {
		return -1, reason, fmt.Errorf("no shared memory: %s, and no unnamed file in /dev/shm: %w", reason, err)
	}
	return fd, reason, nil
}

func newMemfd(size uint64) (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := memfdCreate("hccl", flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = memfdCreate("hccl", flags)
	}
	if err != nil {
		return -1, err
	}
	if err = truncate(fd, size); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, sealed|unix.F_SEAL_SEAL)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// memfdCreate is a variable so that a test can refuse it, as a seccomp filter does.
var memfdCreate = unix.MemfdCreate

// newFile makes an unnamed file: there is nothing to clean up whatever ends this process.
func newFile(dir string, size uint64) (int, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC|unix.O_EXCL, 0o600)
	if err != nil {
		return -1, err
	}
	if err := truncate(fd, size); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// truncate sets the size of a file. Beyond the process's limit for files the kernel would send SIGXFSZ, which ends the process.
func truncate(fd int, size uint64) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && size > limit.Cur {
		return fmt.Errorf("files may have %d bytes here, %d are needed (ulimit -f): %w", limit.Cur, size, unix.EFBIG)
	}
	return retry(func() error { return unix.Ftruncate(fd, int64(size)) })
}

// retry repeats a system call that a signal interrupted.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// commit gives a range its pages: a full memory is an error here and not a SIGBUS at the first touch.
func commit(fd int, off, n uint64) error {
	err := retry(func() error { return unix.Fallocate(fd, 0, int64(off), int64(n)) })
	if err != nil {
		return fmt.Errorf("%d KiB of shared memory: %w", n>>10, err)
	}
	return nil
}

// giveBack returns the pages of a range to the system; it reads as zeros from then on.
func giveBack(fd int, off, n uint64) error {
	return retry(func() error {
		return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(off), int64(n))
	})
}

var errUnsealed = errors.New("a peer's memory is not sealed against a change of its size")

// checkMemory returns the size of memory that came from a peer, once it cannot shrink under our feet. A file in /dev/shm has no
// seals: it is accepted where this process had to make one too, and only without a name.
func checkMemory(fd int, fallback bool) (uint64, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err == nil && seals&sealed == sealed {
		return uint64(st.Size), nil
	}
	if fallback && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 0 {
		return uint64(st.Size), nil
	}
	return 0, errUnsealed
}
