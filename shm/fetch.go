package shm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrElsewhere says that a process cannot be reached from here: it is on another host, in another network namespace, or gone.
var ErrElsewhere = errors.New("no such process in this host's network namespace")

var (
	errStopped  = errors.New("stopped while waiting for memory from a process of this host")
	errDeadline = errors.New("a process of this host did not hand over its memory in time")
)

// request is what a client sends: magic, flags, key.
type request struct {
	life bool // send the memory with the process's record lock too: there is no pidfd
	key  Key
}

const requestSize = 8 + 16

var (
	requestMagic = [7]byte{'H', 'C', 'C', 'L', 'x', 'q', 1}
	answerMagic  = [8]byte{'H', 'C', 'C', 'L', 'x', 'a', 1, 0}
)

func (r *request) bytes() []byte {
	b := append(make([]byte, 0, requestSize), requestMagic[:]...)
	flags := byte(0)
	if r.life {
		flags = 1
	}
	return append(append(b, flags), r.key[:]...)
}

func (r *request) parse(b []byte) bool {
	if len(b) != requestSize || !bytes.Equal(b[:7], requestMagic[:]) || b[7] > 1 {
		return false
	}
	r.life = b[7] == 1
	copy(r.key[:], b[8:])
	return true
}

// Fetch asks the process called name for what it offers under key, and waits for an offer that is yet to come. It ends with an
// error at the deadline and when stop (may be nil) answers true; ErrElsewhere says that no such process is reachable from here.
//
// Ranks of this process that want the same at the same time have one of them ask, and get a copy each.
func (l *Local) Fetch(name, key Key, deadline time.Time, stop func() bool) (fd int, err error) {
	c, what := client{name: name, key: key, deadline: deadline, stop: stop}, [2]Key{name, key}
	l.mu.Lock()
	f := l.fetches[what]
	if f == nil {
		f = &fetch{users: 1, ready: make(chan struct{}), fd: -1}
		l.fetches[what] = f
		l.mu.Unlock()
		f.run(&c)
	} else {
		f.users++
		l.mu.Unlock()
		err = c.until(f.ready)
	}
	defer f.leave(l, what)
	if err != nil {
		return -1, err
	}
	if f.err != nil {
		return c.alone(f.err)
	}
	return unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0)
}

// fetch is one of several ranks' asking.
type fetch struct {
	ready chan struct{} // closed when there is fd, or err
	fd    int           // read after ready
	err   error         // read after ready
	users int           // guarded by Local.mu
}

func (f *fetch) run(c *client) {
	fds, _, err := c.run(false)
	if f.err = err; err == nil {
		f.fd = keep(fds[0])
	}
	close(f.ready)
}

// leave counts a user out. The last one closes what was fetched.
func (f *fetch) leave(l *Local, what [2]Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.users--; f.users > 0 {
		return
	}
	delete(l.fetches, what)
	if f.fd >= 0 {
		closeKept(f.fd)
	}
}

// alone asks once more where who asked for all was stopped or had less time.
func (c *client) alone(why error) (int, error) {
	if why != errStopped && why != errDeadline {
		return -1, why
	}
	fds, _, err := c.run(false)
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// client is one Fetch or Connect.
type client struct {
	name, key Key
	deadline  time.Time
	stop      func() bool
}

// run asks until it is answered: a connection may be cut because the other side is full of strangers.
func (c *client) run(identify bool) (fds []int, p *process, err error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		fds, p, err = c.ask(identify)
		if err != errCut {
			return fds, p, err
		}
		if err := c.wait(-1, pause); err != nil {
			return nil, nil, err
		}
	}
}

// errCut: connect again. Busy or closed without an answer.
var errCut = errors.New("connection closed")

func (c *client) ask(identify bool) ([]int, *process, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socket", err)
	}
	keep(fd)
	defer closeKept(fd)
	switch err := unix.Connect(fd, address(c.name)); err {
	case nil:
	case unix.EAGAIN, unix.EINTR:
		return nil, nil, errCut
	case unix.ECONNREFUSED, unix.ENOENT:
		return nil, nil, ErrElsewhere
	default:
		return nil, nil, fmt.Errorf("connecting to a process of this host: %w", err)
	}
	p := noProcess()
	if identify {
		p = identifyPeer(fd)
	}
	fds, err := c.exchange(fd, request{life: identify && p.pidfd < 0, key: c.key})
	if err == nil && identify {
		fds, err = p.confirm(fds)
	}
	if err != nil {
		p.close()
		return nil, nil, err
	}
	return fds, p, nil
}

// exchange sends the request and waits for the answer.
func (c *client) exchange(fd int, r request) ([]int, error) {
	err := retry(func() error { return unix.Sendmsg(fd, r.bytes(), nil, nil, unix.MSG_NOSIGNAL) })
	if err != nil {
		return nil, errCut
	}
	for {
		var b [len(answerMagic) + 1]byte
		oob := make([]byte, unix.CmsgSpace(2*4))
		n, oobn, _, _, err := unix.Recvmsg(fd, b[:], oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN:
			if err := c.wait(fd, 20*time.Millisecond); err != nil {
				return nil, err
			}
		case err == unix.EINTR:
		case err != nil || n == 0:
			return nil, errCut
		default:
			return received(b[:n], oob[:oobn])
		}
	}
}

// received takes the descriptors out of an answer; what is not as it should be is closed.
func received(b, oob []byte) ([]int, error) {
	var fds []int
	msgs, err := unix.ParseSocketControlMessage(oob)
	for k := range msgs {
		if got, err := unix.ParseUnixRights(&msgs[k]); err == nil {
			fds = append(fds, got...)
		}
	}
	if err == nil && len(fds) > 0 && bytes.Equal(b, answerMagic[:]) {
		return fds, nil
	}
	closeAll(fds)
	return nil, errors.New("a process of this host answered without its memory (out of descriptors here, see ulimit -n?)")
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// How often those who wait for another rank of this process look whether they still may: there may be hundreds.
const firstLook, lookLeast = 10 * time.Millisecond, 200 * time.Millisecond

// until waits for another rank of this process.
func (c *client) until(ready chan struct{}) error {
	select {
	case <-ready: // no timer where none is needed
		return nil
	default:
	}
	pace := firstLook
	timer := time.NewTimer(pace)
	defer timer.Stop()
	for {
		select {
		case <-ready:
			return nil
		case <-timer.C:
		}
		if err := c.over(); err != nil {
			return err
		}
		pace = min(2*pace, lookLeast)
		timer.Reset(pace)
	}
}

// wait sleeps until fd (if any) is readable or d has passed, unless it is time to give up.
func (c *client) wait(fd int, d time.Duration) error {
	if err := c.over(); err != nil {
		return err
	}
	left := time.Until(c.deadline)
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} // a negative one is passed over
	unix.Poll(fds, int(min(d, left)/time.Millisecond)+1)
	return nil
}

// over says when to give up.
func (c *client) over() error {
	if c.stop != nil && c.stop() {
		return errStopped
	}
	if time.Until(c.deadline) <= 0 {
		return errDeadline
	}
	return nil
}
