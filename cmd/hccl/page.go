package main

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is the memory that all ranks of one process, or of all processes that this tool started, share apart from the library: a
// barrier, the unique id, and what each rank found. It starts as zeros. Between two barriers each word has one writer.
type page struct {
	waiting atomic.Int32 // threads at the barrier
	round   atomic.Int32 // barriers passed
	asleep  atomic.Int32 // threads that sleep until the round changes
	id      [idSize]byte // rank 0's, before the first barrier
	of      [mostRanks]found
}

// found is what one rank has to say: about itself, and about one measurement.
type found struct {
	seconds  float64 // per call
	p50, p99 float64
	wrong    int64
	pid      int32
	local    int32
	host     [64]byte
	numa     int32 // where the rank runs, as in package sysfs
	cache    int32
	_        [16]byte // two lines of its own
}

func (f *found) hostName() string { return string(bytes.TrimRight(f.host[:], "\x00")) }

// newPage makes a page that children can inherit by the descriptor.
func newPage() (*page, int, error) {
	fd, err := unix.MemfdCreate("hccl-perf", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, -1, fmt.Errorf("memory for the ranks: %w", err)
	}
	if err := unix.Ftruncate(fd, int64(unsafe.Sizeof(page{}))); err != nil {
		return nil, -1, fmt.Errorf("memory for the ranks: %w", err)
	}
	p, err := mapPage(fd)
	return p, fd, err
}

func mapPage(fd int) (*page, error) {
	b, err := unix.Mmap(fd, 0, int(unsafe.Sizeof(page{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("memory of the ranks (descriptor %d): %w", fd, err)
	}
	return (*page)(unsafe.Pointer(&b[0])), nil // never unmapped: it lives as long as the process
}

const (
	patience = 2000  // looks before the processor is offered to others, where each thread has one
	offers   = 20000 // of the processor, by all threads together, before they sleep: many that only yield keep each other from coming
)

// Operations of futex(2), on memory that processes share.
const (
	futexWait = 0
	futexWake = 1
)

// barrier returns when all n threads have come. It needs no limit of its own: whoever started the ranks ends them all when one fails.
func (p *page) barrier(n, processors int) {
	round := p.round.Load()
	if p.waiting.Add(1) == int32(n) {
		p.waiting.Store(0)
		p.round.Add(1)
		if p.asleep.Load() > 0 {
			p.futex(futexWake, n)
		}
		return
	}
	spins := patience
	if n > processors {
		spins = 0
	}
	for k := 0; p.round.Load() == round; k++ {
		switch {
		case k < spins:
		case k < spins+offers/n:
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			p.asleep.Add(1) // before the word is looked at again, by the kernel
			p.futex(futexWait, int(round))
			p.asleep.Add(-1)
		}
	}
}

// futex sleeps while the round is this one, or wakes so many. Whatever ends the sleep, the barrier looks again.
func (p *page) futex(what, value int) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&p.round)), uintptr(what), uintptr(value), 0, 0, 0)
}

// share is the bytes of what ranks first to first+n-1 found, for the way between processes, and where they are put on arrival.
func (p *page) share(first, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&p.of[first])), n*int(unsafe.Sizeof(found{})))
}

// buffer is memory outside the Go heap, which the library may keep an address of while it works.
func buffer(bytes int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, max(bytes, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("%d bytes for a buffer: %w", bytes, err)
	}
	return b, nil
}
