package shm

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// process is another process as far as its death goes. An end-of-file tells nothing while a forked child of it holds the
// other end, so it is known by, in this order:
//
//   - the socket's SO_PEERPIDFD (Linux 6.5);
//   - pidfd_open of the socket's SO_PEERCRED: whoever answers afterwards was alive then, so the number was not another's;
//   - a record lock that it holds on a memfd, where its number means nothing here: another pid namespace. Record locks
//     belong to a process: its children do not inherit them, its death frees them.
type process struct {
	pidfd int // -1: none
	life  int // -1: none
	pid   int // as seen from here; 0: not seen
	dead  atomic.Bool

	watchers map[int]func() // guarded by the exchange's mu
	serial   int            // guarded by the exchange's mu
	calling  chan struct{}  // guarded by the exchange's mu: closed when the watchers of a death have returned
}

// self is this process: as long as anyone asks, it lives.
var self = &process{pidfd: -1, life: -1, pid: unix.Getpid()}

func noProcess() *process { return &process{pidfd: -1, life: -1} }

// pidfdWays is how many of the first two ways may be tried. Tests lower it.
var pidfdWays = 2

// identifyPeer finds out who made the listening socket at fd's other end.
func identifyPeer(fd int) *process {
	p := noProcess()
	if cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
		p.pid = int(cred.Pid)
	}
	got, err := -1, error(unix.ENOSYS)
	if pidfdWays > 1 {
		got, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	}
	if err != nil && pidfdWays > 0 && p.pid > 0 {
		got, err = unix.PidfdOpen(p.pid, 0)
	}
	if err == nil {
		p.pidfd = keep(got)
	}
	return p
}

var errNoLife = errors.New("a process of this host cannot be watched: no pidfd, and no record lock from it")

// confirm takes the descriptor of the record lock out of the answer, where it is needed.
func (p *process) confirm(fds []int) ([]int, error) {
	if p.pidfd < 0 {
		if len(fds) < 2 {
			closeAll(fds)
			return nil, errNoLife
		}
		p.life = keep(fds[1])
		return fds[:1], nil
	}
	closeAll(fds[1:])
	return fds[:1], nil
}

func (p *process) close() {
	if p.pidfd >= 0 {
		closeKept(p.pidfd)
	}
	if p.life >= 0 {
		closeKept(p.life)
	}
	p.pidfd, p.life = -1, -1
}

// newLife makes the memory whose record lock lives as long as this process. The descriptor is never closed: to close any
// descriptor of it would free the lock.
func newLife() int {
	fd, _, err := newMemory(pageSize)
	if err != nil {
		return -1
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET}
	if err := retry(func() error { return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &lock) }); err != nil {
		unix.Close(fd)
		return -1
	}
	return keep(fd)
}

// unlocked reports whether the process's record lock is free: it has ended.
func (p *process) unlocked() bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET}
	err := retry(func() error { return unix.FcntlFlock(uintptr(p.life), unix.F_GETLK, &lock) })
	return err == nil && lock.Type == unix.F_UNLCK
}

// watch lets the background goroutine look after p.
func (x *exchange) watch(p *process) {
	x.mu.Lock()
	x.procs[p] = struct{}{}
	x.mu.Unlock()
	x.rouse()
}

// forget ends that. The goroutine may be polling the descriptor at this moment: the kernel keeps what it polls, and an
// answer for a process that is not in procs is not heard.
func (x *exchange) forget(p *process) {
	x.mu.Lock()
	delete(x.procs, p)
	p.close()
	x.mu.Unlock()
	x.rouse()
}

// died is the goroutine's finding that p has ended.
func (x *exchange) died(p *process) {
	x.mu.Lock()
	if _, ok := x.procs[p]; !ok {
		x.mu.Unlock()
		return
	}
	delete(x.procs, p)
	p.close()
	p.dead.Store(true)
	calls := p.watchers
	p.watchers, p.calling = nil, make(chan struct{})
	x.mu.Unlock()
	for _, f := range calls {
		f()
	}
	close(p.calling)
}

// tryLocks looks after the processes that have no pidfd.
func (x *exchange) tryLocks() {
	var ended []*process
	x.mu.Lock()
	for p := range x.procs {
		if p.pidfd < 0 && p.unlocked() {
			ended = append(ended, p)
		}
	}
	x.mu.Unlock()
	for _, p := range ended {
		x.died(p)
	}
}

// onDeath registers f, or calls it at once.
func (x *exchange) onDeath(p *process, f func()) (cancel func()) {
	x.mu.Lock()
	dead := p.dead.Load()
	if dead || p == self {
		x.mu.Unlock()
		if dead {
			f()
		}
		return func() {}
	}
	defer x.mu.Unlock()
	if p.watchers == nil {
		p.watchers = map[int]func(){}
	}
	p.serial++
	id := p.serial
	p.watchers[id] = f
	return func() {
		x.mu.Lock()
		delete(p.watchers, id)
		calling := p.calling
		x.mu.Unlock()
		if calling != nil {
			<-calling
		}
	}
}
