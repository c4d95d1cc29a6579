package shm

import (
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// exchange is this process's socket for handing memory over, and the one background goroutine. The goroutine sleeps in poll(2)
// until someone connects, an offer is made, or a watched process dies.
//
// A client sends one request: magic and the key, and gets one answer: magic with the offer's descriptor. A request for a key that
// is not offered yet waits. Strangers can connect too, as abstract sockets have no owner: a connection that asks for nothing
// is closed after a while, or when there are too many, and a client whose connection was closed asks again.
type exchange struct {
	l        *Local
	name     Key
	listener int
	wake     int // eventfd

	mu     sync.Mutex
	offers map[Key]int           // guarded by mu
	procs  map[*process]struct{} // guarded by mu: watched and not known to be dead
	life   int                   // guarded by mu: memfd with this process's record lock, -1: nobody has asked for it

	conns   []*conn // the goroutine's own, as all below
	fds     []unix.PollFd
	watched []*process
	refused bool // accept failed for want of descriptors: leave the listener alone for a while
}

const (
	sweepEvery = 50 * time.Millisecond
	lockEvery  = 20 * time.Millisecond // how often the record locks of peers without a pidfd are tried
)

func newExchange(l *Local) (*exchange, error) {
	x := &exchange{l: l, name: NewKey(), life: -1, offers: map[Key]int{}, procs: map[*process]struct{}{}}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err = unix.Bind(fd, address(x.name)); err == nil {
		err = unix.Listen(fd, 1024)
	}
	if err == nil {
		x.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("the abstract unix socket of this process: %w", err)
	}
	x.listener = keep(fd)
	keep(x.wake)
	return x, nil
}

func address(name Key) *unix.SockaddrUnix {
	return &unix.SockaddrUnix{Name: "@hccl." + hex.EncodeToString(name[:])}
}

func (x *exchange) offer(key Key, fd int) {
	x.mu.Lock()
	x.offers[key] = fd
	x.mu.Unlock()
	x.rouse()
}

func (x *exchange) withdraw(key Key) {
	x.mu.Lock()
	delete(x.offers, key)
	x.mu.Unlock()
}

// rouse makes the goroutine look at what has changed.
func (x *exchange) rouse() {
	one := [8]byte{1}
	retry(func() error { _, err := unix.Write(x.wake, one[:]); return err })
}

// serve is the goroutine.
func (x *exchange) serve() {
	for {
		timeout := x.gather()
		n, err := unix.Poll(x.fds, timeout)
		if err == unix.EINTR {
			continue
		}
		if err != nil { // no memory, or fewer descriptors allowed than are open: it may pass
			time.Sleep(sweepEvery)
			continue
		}
		x.refused = false
		if n > 0 {
			x.dispatch()
		}
		x.answerAll()
		x.expire()
		x.tryLocks()
		x.l.arena.bury()
	}
}

// gather makes the list to poll, wake and listener first, then clients, then processes, and says how long to sleep, in milliseconds.
func (x *exchange) gather() int {
	timeout := time.Duration(-1)
	sooner := func(d time.Duration) {
		if timeout < 0 || d < timeout {
			timeout = d
		}
	}
	listen := int16(unix.POLLIN)
	if x.refused {
		listen = 0
		sooner(sweepEvery)
	}
	x.fds = append(x.fds[:0], unix.PollFd{Fd: int32(x.wake), Events: unix.POLLIN}, unix.PollFd{Fd: int32(x.listener), Events: listen})
	for _, c := range x.conns {
		x.fds = append(x.fds, unix.PollFd{Fd: int32(c.fd), Events: unix.POLLIN})
		if !c.asked {
			sooner(patience)
		}
	}
	x.mu.Lock()
	x.watched = x.watched[:0]
	for p := range x.procs {
		if p.pidfd < 0 {
			sooner(lockEvery)
			continue
		}
		x.watched = append(x.watched, p)
		x.fds = append(x.fds, unix.PollFd{Fd: int32(p.pidfd), Events: unix.POLLIN})
	}
	x.mu.Unlock()
	if x.l.arena.burials() > 0 {
		sooner(sweepEvery)
	}
	if timeout < 0 {
		return -1
	}
	return int(timeout/time.Millisecond) + 1
}

func (x *exchange) dispatch() {
	if x.fds[0].Revents != 0 {
		var b [8]byte
		unix.Read(x.wake, b[:])
	}
	clients := x.fds[2 : 2+len(x.conns)]
	for k, p := range x.watched {
		if x.fds[2+len(x.conns)+k].Revents != 0 {
			x.died(p)
		}
	}
	kept := x.conns[:0]
	for k, c := range x.conns {
		if clients[k].Revents == 0 || c.read() {
			kept = append(kept, c)
		}
	}
	x.conns = kept
	if x.fds[1].Revents != 0 {
		x.accept()
	}
}
