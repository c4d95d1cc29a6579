package tcp

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// watcher is the background of the process: one goroutine that reads while no thread does.
//
//	sockets of a Net  ->  epoll set of the Net  ->  epoll set of the watcher  ->  the runtime's poller
//	     (edges)            (armed, or not, by        (one event an arming)
//	                         the Net)
//
// A thread that reads disarms the Net by one system call, whatever the number of peers; then an arriving packet wakes nobody. The
// goroutine lives while there are sockets and costs no thread while nothing arrives.
type watcher struct {
	mu      sync.Mutex
	ep      int            // the epoll set; guarded by mu
	timer   int            // in ep, for Rest; guarded by mu
	file    *os.File       // owns ep; nil while there are no sockets; guarded by mu
	nets    map[int32]*Net // guarded by mu
	last    int32          // the number given last, from 1; guarded by mu
	ticking atomic.Bool    // the timer is set
}

// timerID is the timer's number among those of Nets.
const timerID = 0

var background watcher

// add makes n, whose sockets are in the epoll set fd, known.
func (w *watcher) add(n *Net, fd int) (set *epollSet, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		if err := w.start(); err != nil {
			return nil, err
		}
	}
	w.last++
	w.nets[w.last] = n
	if err := epollCtl(w.ep, unix.EPOLL_CTL_ADD, fd, unix.EPOLLONESHOT, w.last); err != nil {
		delete(w.nets, w.last) // the goroutine may stay without sockets; the next end of some ends it
		return nil, fmt.Errorf("cannot watch the connections to other processes: %w", err)
	}
	return &epollSet{ep: fd, watch: w.ep, timer: w.timer, id: w.last}, nil
}

// remove forgets what has no sockets any more. The last one's end ends the goroutine: Close waits for it, and it may be waiting for mu.
func (w *watcher) remove(id int32, fd int) {
	w.mu.Lock()
	_ = epollCtl(w.ep, unix.EPOLL_CTL_DEL, fd, 0, id)
	delete(w.nets, id)
	var unused *os.File
	if len(w.nets) == 0 {
		if FDs != nil {
			FDs.Closed(w.ep)
		}
		closeFD(w.timer)
		unused, w.file = w.file, nil
	}
	w.mu.Unlock()
	if unused != nil {
		_ = unused.Close()
	}
}

// start begins the goroutine. w.mu is held.
func (w *watcher) start() error {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("cannot make an epoll set: %w", err)
	}
	_ = unix.SetNonblock(ep, true) // what makes os.NewFile use the poller
	file := os.NewFile(uintptr(ep), "hccl tcp")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("cannot poll an epoll set: %w", err)
	}
	timer, err := newTimer(ep)
	if err != nil {
		_ = file.Close()
		return err
	}
	keepFD(ep)
	w.ep, w.file, w.timer, w.nets = ep, file, timer, map[int32]*Net{}
	w.ticking.Store(false)
	go w.run(raw)
	return nil
}

// newTimer makes the timer, whose edges need no reading.
func newTimer(ep int) (int, error) {
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return 0, sysErr("timerfd_create", err)
	}
	if err := epollCtl(ep, unix.EPOLL_CTL_ADD, timer, unix.EPOLLIN|unix.EPOLLET, timerID); err != nil {
		_ = unix.Close(timer)
		return 0, sysErr("epoll_ctl", err)
	}
	keepFD(timer)
	return timer, nil
}

func (w *watcher) run(raw syscall.RawConn) {
	events, list := make([]unix.EpollEvent, 16), make([]*Net, 0, 16)
	_ = raw.Read(func(fd uintptr) bool {
		for n := epollReady(int(fd), events); n > 0; n = epollReady(int(fd), events) {
			for i := range events[:n] {
				if events[i].Fd == timerID {
					list = w.tick(list)
				} else {
					w.serve(events[i].Fd)
				}
			}
		}
		return false // until the file is closed
	})
}

func (w *watcher) serve(id int32) {
	w.mu.Lock()
	n := w.nets[id]
	w.mu.Unlock()
	if n != nil {
		n.background()
	}
}
