package shm

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// meeting is how the processes of a user come by one page: whoever has the name hands its page out, and keeps the connection of each
// that has it. When it ends they see the connections end; one of them gets the name then and hands out the same page.
//
// Nothing here waits: turn goes on as far as it can. A holder of the name that is stopped answers later; who has no answer is alone
// until then.
type meeting struct {
	name     string
	listener int // this process has the name; -1: another has it, or nobody
	host     int // the connection to the process that has it; -1: none
	guests   []int
}

// ledgerName is where the processes of this user meet. It belongs to a network namespace, as cards do.
func ledgerName() string { return "@hccl.ledger." + strconv.Itoa(os.Getuid()) }

// turn hands page out where this process has the name; else it returns the page that it is to use, -1: it stays with its own.
func (m *meeting) turn(page int) (other int) {
	switch {
	case m.listener >= 0:
		m.welcome(page)
	case m.host >= 0:
		return m.hear()
	default:
		m.seek()
	}
	return -1
}

// seek takes the name, or connects to who has it.
func (m *meeting) seek() {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return
	}
	at := &unix.SockaddrUnix{Name: m.name}
	if unix.Bind(fd, at) == nil && unix.Listen(fd, ledgerLines) == nil {
		m.listener = keep(fd)
		return
	}
	unix.Close(fd)
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return
	}
	if unix.Connect(fd, at) != nil || !sameUser(fd) {
		unix.Close(fd)
		return
	}
	m.host = keep(fd)
}

// sameUser reports whether the other end is a process of this one's user. A name is anybody's, a page is not.
func sameUser(fd int) bool {
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	return err == nil && int(who.Uid) == os.Getuid()
}

// hear takes the page that the holder of the name sends, or sees its end.
func (m *meeting) hear() int {
	var b [len(answerMagic) + 1]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := unix.Recvmsg(m.host, b[:], oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err == unix.EAGAIN || err == unix.EINTR {
		return -1
	}
	if err == nil && n > 0 {
		if fds, err := received(b[:n], oob[:oobn]); err == nil {
			return fds[0]
		}
	}
	closeKept(m.host)
	m.host = -1
	return -1
}

// welcome answers those who have come and forgets those who have ended.
func (m *meeting) welcome(page int) {
	left := m.guests[:0]
	for _, fd := range m.guests {
		var b [1]byte
		if _, _, err := unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT); err == unix.EAGAIN || err == unix.EINTR {
			left = append(left, fd)
		} else {
			closeKept(fd)
		}
	}
	m.guests = left
	for len(m.guests) < ledgerLines {
		fd, _, err := unix.Accept4(m.listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if err != nil {
			return
		}
		keep(fd)
		if !sameUser(fd) || unix.Sendmsg(fd, answerMagic[:], unix.UnixRights(page), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT) != nil {
			closeKept(fd)
			continue
		}
		m.guests = append(m.guests, fd)
	}
}
