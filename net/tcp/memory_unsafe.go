package tcp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendmsg sends what the socket takes of iov at once. It never raises SIGPIPE and never blocks, so the scheduler is not told of
// the call: that would cost more than the smallest of them.
func sendmsg(fd int, iov []unix.Iovec, flags uintptr) (int, unix.Errno) {
	msg := unix.Msghdr{Iov: unsafe.SliceData(iov), Iovlen: uint64(len(iov))}
	n, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT|flags)
	return int(n), e
}

// recvmsg fills iov with what has arrived. It never blocks.
func recvmsg(fd int, iov []unix.Iovec) (int, unix.Errno) {
	msg := unix.Msghdr{Iov: unsafe.SliceData(iov), Iovlen: uint64(len(iov))}
	n, _, e := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_DONTWAIT)
	return int(n), e
}

// recvError takes a message from the socket's error queue and returns how much of control it fills.
func recvError(fd int, control []byte) (int, unix.Errno) {
	msg := unix.Msghdr{Control: unsafe.SliceData(control), Controllen: uint64(len(control))}
	_, _, e := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
	return int(msg.Controllen), e
}

// send sends what the socket takes of b, as sendmsg does.
func send(fd int, b []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	return int(n), e
}

// recv fills b with what has arrived, as recvmsg does.
func recv(fd int, b []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		unix.MSG_DONTWAIT, 0, 0)
	return int(n), e
}

// bytesOf is the memory that v describes.
func bytesOf(v *unix.Iovec) []byte { return unsafe.Slice(v.Base, v.Len) }

// epollReady returns the number of events that are there now.
func epollReady(fd int, events []unix.EpollEvent) int {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(events))),
		uintptr(len(events)), 0, 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// advance takes n bytes off the front of v, n less than its length.
func advance(v *unix.Iovec, n int) {
	v.Base = (*byte)(unsafe.Add(unsafe.Pointer(v.Base), n))
	v.Len -= uint64(n)
}
