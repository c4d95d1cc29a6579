package core

import (
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Stream is an order in which a program wants things done while it does something else: calls of communicators, its own functions,
// and what joins it to other streams, events. It has no thread: what is queued runs on goroutines, one after the other.
type Stream struct {
	jobs []*job // guarded by scheduler.mu; the first may be running
	err  error  // guarded by scheduler.mu: the first that Synchronize has not returned yet

	inHost atomic.Int32 // the thread that runs a function of the program for this stream, 0: none
}

var streams roster[Stream]

// NewStream makes a stream and returns its number.
func NewStream() uint64 { return streams.add(&Stream{}) }

// FindStream returns the stream with this number, nil if there is none (any more).
func FindStream(number uint64) *Stream { return streams.find(number) }

// DestroyStream forgets a stream. What is queued on it goes on to its end, for which it does not wait; only its errors are not told
// by it any more.
func DestroyStream(number uint64) error {
	if !streams.remove(number) {
		return errStreamGone()
	}
	return nil
}

func errStreamGone() error { return failf(InvalidArgument, "the stream was destroyed") }

// last is the job behind which the next one will stand, nil if nothing is queued.
func (s *Stream) last() *job {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	if len(s.jobs) == 0 {
		return nil
	}
	return s.jobs[len(s.jobs)-1]
}

// fail keeps an error for Synchronize unless one is there.
func (s *Stream) fail(err error) {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// Synchronize waits until what is queued now is done, and returns the first error since it last returned one.
func (s *Stream) Synchronize() error {
	done, err := s.Idle()
	if err != nil {
		return err
	}
	<-done
	return s.TakeErr()
}

// Idle gives a channel that is closed when what is queued now is done. A function of the stream itself must not wait for that.
func (s *Stream) Idle() (<-chan struct{}, error) {
	if id := s.inHost.Load(); id != 0 && int(id) == unix.Gettid() {
		return nil, failf(InvalidUsage, "a host function waits for the stream that runs it, which would never end: let the thread that "+
			"launched it wait")
	}
	if j := s.last(); j != nil {
		return j.done, nil
	}
	return nothing, nil
}

// TakeErr returns the first error since it last returned one.
func (s *Stream) TakeErr() error {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	err := s.err
	s.err = nil
	return err
}

// Query is nil if all is done and went well, errInProgress while something is queued or running, else the error that Synchronize
// will return.
func (s *Stream) Query() error {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	if len(s.jobs) > 0 {
		return errInProgress
	}
	return s.err
}

// put queues something that concerns no communicator.
func (s *Stream) put(run func()) {
	schedule(&job{streams: []*Stream{s}, run: run})
}

// HostFunc has f, a function of the program, called in the stream's order on a thread of the library. It may take long, and may use
// the library, but must not wait for the stream itself.
func (s *Stream) HostFunc(f func()) {
	s.put(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		s.inHost.Store(int32(unix.Gettid()))
		defer s.inHost.Store(0)
		defer unpin()()
		f()
	})
}

// After has f called in the stream's order. It is the library's own, short, and calls nothing of the library.
func (s *Stream) After(f func()) { s.put(f) }

// WaitEvent holds the stream up until what the event's last Record stands behind is done.
func (s *Stream) WaitEvent(e *Event) {
	if m := e.last.Load(); m != nil && !m.reached() {
		s.put(func() { <-m.done })
	}
}
