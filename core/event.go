package core

import (
	"sync/atomic"
	"time"
)

// Event is a point in a stream that can be waited for, from other streams too. Each Record is a point of its own: who waits for an
// earlier one keeps it.
type Event struct {
	last atomic.Pointer[mark] // nil: never recorded
}

// mark is one Record.
type mark struct {
	done chan struct{} // closed when the stream reaches it
	at   time.Time     // when; written before done is closed
}

var events roster[Event]

// NewEvent makes an event and returns its number.
func NewEvent() uint64 { return events.add(&Event{}) }

// FindEvent returns the event with this number, nil if there is none (any more).
func FindEvent(number uint64) *Event { return events.find(number) }

// DestroyEvent forgets an event. Streams that wait for it go on waiting for what it was recorded for.
func DestroyEvent(number uint64) error {
	if !events.remove(number) {
		return errEventGone()
	}
	return nil
}

func errEventGone() error { return failf(InvalidArgument, "the event was destroyed") }

// Record puts the event behind what is queued on s now; nil is the NULL stream, on which everything is done already.
func (e *Event) Record(s *Stream) {
	m := &mark{done: make(chan struct{})}
	e.last.Store(m)
	if s == nil {
		m.reach()
		return
	}
	s.put(m.reach)
}

func (m *mark) reach() {
	m.at = time.Now()
	close(m.done)
}

func (m *mark) reached() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// nothing is what is waited for where nothing is left to be waited for.
var nothing = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Done is closed when the last Record has been reached; one that was never recorded is.
func (e *Event) Done() <-chan struct{} {
	if m := e.last.Load(); m != nil {
		return m.done
	}
	return nothing
}

// Synchronize waits for Done.
func (e *Event) Synchronize() error {
	<-e.Done()
	return nil
}

// Query is nil if the last Record has been reached or there was none, else errInProgress.
func (e *Event) Query() error {
	if m := e.last.Load(); m != nil && !m.reached() {
		return errInProgress
	}
	return nil
}

// Since is the time between two events that have been reached.
func (e *Event) Since(start *Event) (time.Duration, error) {
	from, to := start.last.Load(), e.last.Load()
	switch {
	case from == nil || to == nil:
		return 0, failf(InvalidArgument, "the %s event was never recorded: call hcclEventRecord first", which(from))
	case !from.reached() || !to.reached():
		return 0, errInProgress
	}
	return to.at.Sub(from.at), nil
}

func which(from *mark) string {
	if from == nil {
		return "start"
	}
	return "end"
}
