package log

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// FDs is told of the descriptor of NCCL_DEBUG_FILE, which a forked child must close. Set once, before the first Configure.
var FDs interface {
	Opened(fd int)
	Closed(fd int)
}

const stderr = 2

// output is where lines go.
type output struct {
	mu   sync.Mutex
	name string // guarded by mu: the file that is open, "" for stderr
	fd   int    // guarded by mu
}

var out = output{fd: stderr}

// open turns to the named file; with LevelNone no file is made, since nothing will be written. On an error stderr is used.
func (o *output) open(name string, level Level) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if level == LevelNone || name == o.name {
		return nil
	}
	fd, err := stderr, error(nil)
	if name != "" {
		// Append: ranks that were given the same name must not write over each other's lines.
		fd, err = retry(func() (int, error) {
			return unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_CLOEXEC|unix.O_NOCTTY, 0o644)
		})
		if err != nil {
			fd, name = stderr, ""
		}
	}
	o.turn(name, fd)
	return err
}

// turn is called with mu held.
func (o *output) turn(name string, fd int) {
	if o.fd != stderr {
		_ = unix.Close(o.fd)
		if FDs != nil {
			FDs.Closed(o.fd)
		}
	}
	o.name, o.fd = name, fd
	if fd != stderr && FDs != nil {
		FDs.Opened(fd)
	}
}

// write sends one line in one call. What cannot be written is lost: a log must not fail the operation it speaks of.
//
// A pipe or socket whose reader has gone would send SIGPIPE to the host program. A socket is spared by MSG_NOSIGNAL; for a pipe
// the signal is blocked in this thread during the write, and taken back if the write raised it (muted). What stderr is gets asked
// for each line, because the host may put something else there at any time.
func (o *output) write(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var st unix.Stat_t
	if _, err := retry(func() (int, error) { return 0, unix.Fstat(o.fd, &st) }); err != nil {
		return
	}
	put := unix.Write
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		put = func(fd int, p []byte) (int, error) { return unix.SendmsgN(fd, p, nil, nil, unix.MSG_NOSIGNAL) }
	case unix.S_IFIFO:
		put = muted
	}
	for len(line) > 0 {
		n, err := retry(func() (int, error) { return put(o.fd, line) })
		if err != nil || n <= 0 {
			return
		}
		line = line[n:] // a short write is rare (a full disk or pipe); the rest goes as a second one
	}
}

// muted writes without a SIGPIPE reaching the host.
func muted(fd int, p []byte) (int, error) {
	runtime.LockOSThread() // the mask belongs to the thread
	defer runtime.UnlockOSThread()
	before, pending := blockPipe()
	n, err := unix.Write(fd, p)
	if err == unix.EPIPE && !pending {
		takePipe()
	}
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return n, err
}

func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}
