package registration

/*
#cgo CFLAGS: -O2 -Wall -Wextra
#include "reader.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernel is the notice by userfaultfd. Memory is watched for writes to protected pages, and none is ever protected: no access stops, and
// what is left are the events, which the kernel sends for watched memory whatever it is watched for.
//
// The kernel announces an unmapping when it is done, a moment after another thread may have mapped something else there. But it counts
// changes that are under way from before they begin until their event was read and their thread woken up, and refuses requests
// (EAGAIN) meanwhile: settled asks with an empty request, and then for events that the reader has in its hands. start tries all that.
//
// The feature WP_ASYNC, by which any mapping could be watched, is not asked for: without it the kernel itself refuses System V segments,
// whose detaching it does not tell.
type kernel struct{ fd int }

// FDs is told of the descriptor that is kept, so that a forked child can close it. It is set before the first Get or nil.
var FDs interface {
	Opened(fd int)
	Closed(fd int)
}

// As in linux/userfaultfd.h; x/sys/unix has no names for it.
const (
	userModeOnly = 1 // needs no right, since Linux 5.11
	apiVersion   = 0xaa
	features     = 1<<2 | 1<<3 | 1<<6 // EVENT_REMAP, EVENT_REMOVE, EVENT_UNMAP
	writeProtect = 1 << 1             // of registering

	ioctlAPI          = 0xc018aa3f
	ioctlRegister     = 0xc020aa00
	ioctlUnregister   = 0x8010aa01
	ioctlWriteProtect = 0xc018aa06
)

var here = &C.hccl_changes_here

func word(w *C.uint32_t) *uint32 { return (*uint32)(unsafe.Pointer(w)) }

func (k *kernel) ioctl(request uintptr, arg unsafe.Pointer) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(k.fd), request, uintptr(arg)); e != 0 {
		return e
	}
	return nil
}

func (k *kernel) start() error {
	fd, err := open()
	if err != nil {
		return err
	}
	k.fd = int(fd)
	err = k.try()
	if err != nil {
		_ = unix.Close(k.fd)
		return err
	}
	if FDs != nil {
		FDs.Opened(k.fd)
	}
	return nil
}

// stop leaves the descriptor alone: the number is another's by now.
func (k *kernel) stop() {
	if FDs != nil {
		FDs.Closed(k.fd)
	}
}

func open() (fd uintptr, err error) {
	for _, flags := range []uintptr{userModeOnly, 0} {
		var e unix.Errno
		if fd, _, e = unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|flags, 0, 0); e == 0 {
			return fd, nil
		}
		if err = os.NewSyscallError("userfaultfd", e); e != unix.EINVAL {
			break
		}
	}
	return 0, err
}

var errDeaf = errors.New("userfaultfd is there, but does not tell what becomes of memory")

// try has a page unmapped, as the first change that is told.
func (k *kernel) try() error {
	api := struct{ api, features, ioctls uint64 }{apiVersion, features, 0}
	if err := k.ioctl(ioctlAPI, unsafe.Pointer(&api)); err != nil {
		return os.NewSyscallError("userfaultfd", err)
	}
	trial, err := unix.MmapPtr(-1, 0, nil, uintptr(page), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	s := span{uint64(uintptr(trial)), uint64(uintptr(trial)) + page}
	if err = os.NewSyscallError("userfaultfd", k.register(s)); err == nil {
		switch e := C.hccl_changes_start(here, C.int(k.fd), trial, C.uint64_t(page)); {
		case e == 0:
			return k.hear(s)
		case e < 0:
			return errDeaf
		default:
			err = fmt.Errorf("no thread for userfaultfd: %w", unix.Errno(e))
		}
	}
	_ = unix.MunmapPtr(trial, uintptr(page))
	return err
}

// hearing is how long the first change may take. It has been read by then, and the reader only needs a processor.
const hearing = 5 * time.Second

// hear takes the first change, that s was unmapped.
func (k *kernel) hear(s span) error {
	for end := time.Now().Add(hearing); time.Now().Before(end); yield() {
		if settled, err := k.settled(); err != nil || settled {
			break
		}
	}
	told := change{}
	k.take(func(ch change) { told = ch })
	if told != (change{s, Unmapped}) {
		return errDeaf
	}
	return nil
}

func (k *kernel) register(s span) error {
	request := struct{ start, size, mode, ioctls uint64 }{s.start, s.size(), writeProtect, 0}
	return k.ioctl(ioctlRegister, unsafe.Pointer(&request))
}

func (k *kernel) watch(s span) error {
	switch err := k.register(s); err {
	case nil:
		return nil
	case unix.EBUSY:
		return fmt.Errorf("another userfaultfd of the program has that memory: %w", err)
	case unix.EINVAL, unix.EPERM:
		return fmt.Errorf("changes of such memory (a file, a System V segment) are not told: %w", err)
	default:
		return os.NewSyscallError("userfaultfd", err)
	}
}

// unwatch leaves the memory watched where something is becoming of it, which costs no more than an event: it may have been unmapped,
// and the address be another userfaultfd's, which older kernels than 6.16 would take it from.
func (k *kernel) unwatch(s span) {
	if settled, err := k.settled(); settled && err == nil {
		request := struct{ start, size uint64 }{s.start, s.size()}
		_ = k.ioctl(ioctlUnregister, unsafe.Pointer(&request))
	}
}

// settled enters the kernel without Go's leave: the answer comes at once.
func (k *kernel) settled() (bool, error) {
	_, _, e := unix.RawSyscall(unix.SYS_IOCTL, uintptr(k.fd), ioctlWriteProtect, uintptr(unsafe.Pointer(&here.question)))
	if ended := atomic.LoadUint32(word(&here.ended)); ended != 0 {
		return false, unix.Errno(ended)
	}
	switch e {
	case unix.EAGAIN:
		return false, nil
	case unix.EINVAL: // the range is empty
		return atomic.LoadUint32(word(&here.busy)) == 0, nil
	case 0:
		return false, errDeaf
	default:
		return false, e
	}
}

func (k *kernel) news() bool {
	return atomic.LoadUint32(word(&here.head)) != atomic.LoadUint32(word(&here.tail)) || atomic.LoadUint32(word(&here.missed)) != 0
}

// mostChanges is how many are kept until they are taken.
const mostChanges = C.HCCL_CHANGES

const futexWait = 128 // FUTEX_WAIT_PRIVATE

func (k *kernel) wait() bool {
	for {
		bell := atomic.LoadUint32(word(&here.bell))
		if k.news() {
			return true
		}
		if atomic.LoadUint32(word(&here.ended)) != 0 {
			return false
		}
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&here.bell)), futexWait, uintptr(bell), 0, 0, 0)
	}
}

func (k *kernel) take(do func(change)) {
	head, tail := atomic.LoadUint32(word(&here.head)), atomic.LoadUint32(word(&here.tail))
	for ; tail != head; tail++ {
		ch := &here.ring[tail%mostChanges]
		do(change{span{uint64(ch.start), uint64(ch.end)}, How(ch.how)})
	}
	atomic.StoreUint32(word(&here.tail), tail)
	if atomic.SwapUint32(word(&here.missed), 0) != 0 {
		do(change{span: everything})
	}
}
