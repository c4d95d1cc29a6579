package hccl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"hccl.dev/hccl/core"
)

// Stream is an order in which work is done while its goroutine does something else. Operations that are asked of it return at once:
//
//	var s hccl.Stream
//	err := hccl.AllReduce(ctx, s.On(c), grad, grad, hccl.Sum) // begins
//	compute()                                                 // beside it
//	err = s.Synchronize(ctx)                                  // the result is there
//
// Until then their slices are the library's: they are neither to be read nor written. They stay pinned so long. Operations of one
// communicator keep their order, also on several streams, and calls outside streams wait for those that are queued. The context of a
// queued operation only says whether it begins.
//
// The zero Stream is ready, holds no goroutine while nothing is queued, and needs no end. It must not be copied.
type Stream struct {
	core core.Stream

	mu    sync.Mutex
	comms []*Comm // guarded by mu: those that Synchronize may have to give up
	err   error   // guarded by mu: the first of the program's functions, until Synchronize
}

// On is where operations on c are asked of the stream.
func (s *Stream) On(c *Comm) Caller { return queued{s, c} }

// OnStream is On for a communicator whose operations are queued on s. The group is one piece of work: it begins when all its streams
// and communicators have come so far, and all go on after it. Group then returns at once, unless it has operations outside streams.
func (g *Calls) OnStream(s *Stream, c *Comm) Caller { return member{g, c, s} }

// queued is a communicator's place on a stream.
type queued struct {
	s *Stream
	c *Comm
}

func (q queued) perform(ctx context.Context, r request) error {
	s, c := q.s, q.c
	if s == nil {
		return argumentf("%v: the stream is nil", r.fn)
	}
	if err := c.usable(ctx); err != nil {
		return err
	}
	var call core.Call
	if err := r.check(c.rank, c.n, &call); err != nil {
		return err
	}
	call.Stream = &s.core
	pins := new(runtime.Pinner)
	call.Send, call.Recv = r.send.pin(pins), r.recv.pin(pins)
	s.note(c)
	if err := c.core.Do(&call, 0); err != nil {
		pins.Unpin()
		return c.outcome(err)
	}
	s.core.After(pins.Unpin)
	return nil
}

// note has Synchronize know c.
func (s *Stream) note(c *Comm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.comms, c) {
		s.comms = append(s.comms, c)
	}
}

// Go has f called in the stream's order, on a goroutine of its own. The stream waits for it, so it should return soon. It may queue
// more, also on this stream, but not wait for it. Its error is returned by Synchronize; so is a panic, as an error.
func (s *Stream) Go(f func() error) {
	s.core.HostFunc(func() {
		if err := guarded(f); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.err == nil {
				s.err = err
			}
		}
	})
}

func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a function on a stream panicked: %v", p)
		}
	}()
	return f()
}

// Wait holds the stream up until what the event was last recorded behind is done.
func (s *Stream) Wait(e *Event) { s.core.WaitEvent(&e.core) }

// Idle reports whether nothing is queued or running.
func (s *Stream) Idle() bool {
	var e *core.Error
	return !errors.As(s.core.Query(), &e) || e.Result != core.InProgress
}

// Synchronize waits until what is queued is done, and returns the first error since it last returned one: that of an operation, or
// else what a function of Go returned. When ctx ends, the communicators that have been used on the stream are aborted, as by an
// operation that waits, and their slices are the program's again; one that has ended before stops this call only. To wait for a while
// and abort nothing, see Event.Done.
func (s *Stream) Synchronize(ctx context.Context) error {
	done, err := s.core.Idle()
	if err != nil {
		return failure(err)
	}
	select {
	case <-done:
		return s.result()
	default:
	}
	if ctx.Err() != nil {
		return ended(ctx, nil)
	}
	select {
	case <-done:
		return s.result()
	case <-ctx.Done():
		return s.giveUp(ctx, done)
	}
}

// result takes the first error.
func (s *Stream) result() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Idle() {
		s.comms = nil
	}
	if err := s.core.TakeErr(); err != nil {
		return failure(err)
	}
	err := s.err
	s.err = nil
	return err
}

// heldUp is how long a stream has to come to its end once its communicators have been aborted. Only a function of the program can
// make it longer.
const heldUp = time.Second

// giveUp aborts the communicators. Their operations are over when that returns, and the first one's error says whom it waited for.
func (s *Stream) giveUp(ctx context.Context, done <-chan struct{}) error {
	s.mu.Lock()
	comms := slices.Clone(s.comms)
	s.mu.Unlock()
	for _, c := range comms {
		c.giveUp(ctx)
	}
	patience := time.NewTimer(heldUp)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C:
		return ended(ctx, errors.New("the stream is held up by a function that it runs, or by an event"))
	}
	if err := s.core.TakeErr(); err != nil {
		return ended(ctx, err)
	}
	return s.result() // all was done in the same moment
}
