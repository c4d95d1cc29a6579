package tcp

import "golang.org/x/sys/unix"

// FDs is told of every descriptor that the package keeps, so that a forked child can close them. Core sets it before the first
// Fabric is made; nil is fine.
var FDs interface {
	Opened(fd int)
	Closed(fd int)
}

func keepFD(fd int) {
	if FDs != nil {
		FDs.Opened(fd)
	}
}

// closeFD closes a kept descriptor. The hook hears of it first: afterwards the number may be another thread's.
func closeFD(fd int) {
	if FDs != nil {
		FDs.Closed(fd)
	}
	_ = unix.Close(fd)
}

// epollCtl makes, changes or ends fd's place in the epoll set ep; id comes back with its events.
func epollCtl(ep, op, fd int, events uint32, id int32) error {
	for {
		err := unix.EpollCtl(ep, op, fd, &unix.EpollEvent{Events: events, Fd: id})
		if err != unix.EINTR {
			return err
		}
	}
}
