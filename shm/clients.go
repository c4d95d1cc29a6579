package shm

import (
	"time"

	"golang.org/x/sys/unix"
)

// conn is a client that has not been answered.
type conn struct {
	fd    int
	since time.Time
	asked bool
	req   request
}

const (
	maxStrangers = 128  // connections that have not asked
	maxWaiting   = 1024 // connections that have, for what is not offered
	patience     = 2 * time.Second
)

func (x *exchange) accept() {
	for {
		fd, _, err := unix.Accept4(x.listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		switch err {
		case nil:
			x.conns = append(x.conns, &conn{fd: keep(fd), since: time.Now()})
		case unix.EINTR, unix.ECONNABORTED:
		case unix.EAGAIN:
			return
		default:
			x.refused = true
			return
		}
	}
}

// read takes the request. False: the connection was closed, as it has ended or is a stranger's.
func (c *conn) read() bool {
	var b [requestSize + 1]byte
	n, err := unix.Read(c.fd, b[:])
	if err == unix.EAGAIN || err == unix.EINTR {
		return true
	}
	if err != nil || c.asked || !c.req.parse(b[:n]) {
		closeKept(c.fd)
		return false
	}
	c.asked = true
	return true
}

// answerAll answers the clients whose keys are offered.
func (x *exchange) answerAll() {
	kept := x.conns[:0]
	for _, c := range x.conns {
		if !c.asked || !x.answer(c) {
			kept = append(kept, c)
		}
	}
	x.conns = kept
}

// answer sends the offer while mu keeps it from being withdrawn, and its descriptor from being closed.
func (x *exchange) answer(c *conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	fd, ok := x.offers[c.req.key]
	if !ok {
		return false
	}
	fds := []int{fd}
	if c.req.life {
		if x.life < 0 {
			x.life = newLife()
		}
		if x.life >= 0 {
			fds = append(fds, x.life)
		}
	}
	retry(func() error {
		return unix.Sendmsg(c.fd, answerMagic[:], unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	})
	closeKept(c.fd)
	return true
}

// expire closes connections that have not asked for long, and the oldest where there are too many of a kind.
func (x *exchange) expire() {
	now := time.Now()
	asked := 0
	for _, c := range x.conns {
		if c.asked {
			asked++
		}
	}
	waiting, strangers := asked-maxWaiting, len(x.conns)-asked-maxStrangers // how many of each are too many
	kept := x.conns[:0]
	for _, c := range x.conns { // in the order of their coming
		over := &strangers
		if c.asked {
			over = &waiting
		}
		if *over > 0 || !c.asked && now.Sub(c.since) > patience {
			*over--
			closeKept(c.fd)
			continue
		}
		kept = append(kept, c)
	}
	x.conns = kept
}
