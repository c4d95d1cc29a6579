package shm

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Addresses of mapped memory are uintptr everywhere in this package: the collector has no business with them. The functions of
// this file are the only ones that turn them into pointers. Memory stays mapped as long as its owner (arena, Peer, Segment) says.

func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

func word64(p uintptr) *atomic.Uint64 { return (*atomic.Uint64)(pointer(p)) }
func word32(p uintptr) *atomic.Uint32 { return (*atomic.Uint32)(pointer(p)) }

// slice is a line of a port's ring. Its writer stores stamp last; a reader uses the rest only under the stamp it expects.
type slice struct {
	stamp atomic.Uint64 // number of the slice, counted from 1
	seq   uint64        // of the operation
	hash  uint64        // its fingerprint
	off   uint64        // in the writer's arena
	len   uint64
	lane  uint32
	_     uint32
	_     [16]byte
}

// post is a line of a board: a header under the number of the posting, stored last, 0 while the line is being written.
type post struct {
	stamp  atomic.Uint64
	header [6]atomic.Uint64
	_      [8]byte
}

// Lines are one cache line each; a build breaks where one is not.
var (
	_ [unsafe.Sizeof(slice{})]byte = [lineSize]byte{}
	_ [unsafe.Sizeof(post{})]byte  = [lineSize]byte{}
)

func sliceAt(p uintptr) *slice { return (*slice)(pointer(p)) }
func postAt(p uintptr) *post   { return (*post)(pointer(p)) }

// mapMemory maps the first size bytes of fd shared, without reserving swap and without huge pages, which would make sparse
// memory dense. A forked child does not inherit it: it could do nothing with it but harm.
func mapMemory(fd int, size uint64, prot uintptr) (uintptr, error) {
	p, _, errno := unix.Syscall6(unix.SYS_MMAP, 0, uintptr(size), prot, unix.MAP_SHARED|unix.MAP_NORESERVE, uintptr(fd), 0)
	if errno != 0 {
		return 0, errno
	}
	advise(p, size, unix.MADV_NOHUGEPAGE)
	advise(p, size, unix.MADV_DONTFORK)
	return p, nil
}

func unmapMemory(p uintptr, size uint64) { unix.Syscall(unix.SYS_MUNMAP, p, uintptr(size), 0) }

func advise(p uintptr, size uint64, advice uintptr) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, p, uintptr(size), advice)
		switch errno {
		case 0:
			return nil
		case unix.EINTR, unix.EAGAIN:
			continue
		}
		return errno
	}
}

// Processor is the one that the calling thread runs on; -1: unknown.
func Processor() int {
	var cpu uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return -1
	}
	return int(cpu)
}

// futexWait sleeps while the word at p is v, at most for the given nanoseconds.
func futexWait(p uintptr, v uint32, ns int64) {
	ts := unix.NsecToTimespec(ns)
	unix.Syscall6(unix.SYS_FUTEX, p, futexOpWait, uintptr(v), uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// futexWake does not enter the scheduler: it never sleeps.
func futexWake(p uintptr) { unix.RawSyscall(unix.SYS_FUTEX, p, futexOpWake, 1<<30) }

// wordAddress is the address of a word of Go's heap, for a bell that only this process rings. The heap does not move.
func wordAddress(w *atomic.Uint32) uintptr { return uintptr(unsafe.Pointer(w)) }

// Operations of futex(2), not private: the word is shared between processes.
const (
	futexOpWait = 0
	futexOpWake = 1
)
