package log

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const sigsetBytes = 8 // the kernel's sigset_t

// pipeSet is the set of SIGPIPE alone.
var pipeSet = unix.Sigset_t{Val: [len(unix.Sigset_t{}.Val)]uint64{1 << (unix.SIGPIPE - 1)}}

// blockPipe blocks SIGPIPE in this thread; it returns the mask to go back to and whether one was already waiting.
func blockPipe() (before unix.Sigset_t, pending bool) {
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &pipeSet, &before)
	var waiting uint64
	_, _, errno := unix.RawSyscall(unix.SYS_RT_SIGPENDING, uintptr(unsafe.Pointer(&waiting)), sigsetBytes, 0)
	return before, errno == 0 && waiting&pipeSet.Val[0] != 0
}

// takePipe removes the SIGPIPE that a write of this thread has just raised: the kernel sends it to the writing thread itself.
func takePipe() {
	var zero unix.Timespec
	for {
		_, _, errno := unix.Syscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&pipeSet)), 0,
			uintptr(unsafe.Pointer(&zero)), sigsetBytes, 0, 0)
		if errno != unix.EINTR {
			return
		}
	}
}
