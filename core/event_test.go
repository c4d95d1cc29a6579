package core

import (
	"errors"
	"testing"
	"time"

	"hccl.dev/hccl/internal/testkit"
)

// An event orders two streams, and each wait keeps the record that it was made for.
func TestEventOrdersStreams(t *testing.T) {
	a, b := newStream(t), newStream(t)
	id := NewEvent()
	e := FindEvent(id)
	if err := errors.Join(e.Query(), e.Synchronize()); err != nil {
		t.Errorf("an event that was never recorded is waited for: %v", err)
	}
	b.WaitEvent(e)
	if err := b.Synchronize(); err != nil {
		t.Error(err)
	}
	open := gate(a)
	first := false
	a.HostFunc(func() { first = true })
	e.Record(a)
	seen := false
	b.WaitEvent(e)
	b.HostFunc(func() { seen = first })
	again := gate(a)
	defer again()
	e.Record(a) // the wait above is not for this one
	if ResultOf(e.Query()) != InProgress || ResultOf(b.Query()) != InProgress {
		t.Error("the event is reached though its stream is held up")
	}
	if err := DestroyEvent(id); err != nil {
		t.Error(err)
	}
	open()
	testkit.Within(t, patience, "the stream that waits", func() {
		if err := b.Synchronize(); err != nil {
			t.Error(err)
		}
	})
	if !seen {
		t.Error("the second stream went on before the first had come so far")
	}
	if FindEvent(id) != nil || DestroyEvent(id) == nil {
		t.Error("an event is there after its end")
	}
	again()
	if err := errors.Join(e.Synchronize(), a.Synchronize()); err != nil {
		t.Error(err)
	}
}

func TestElapsed(t *testing.T) {
	s := newStream(t)
	from, to := FindEvent(NewEvent()), FindEvent(NewEvent())
	_, err := to.Since(from)
	wantError(t, err, InvalidArgument, "start event was never recorded")
	from.Record(nil)
	_, err = to.Since(from)
	wantError(t, err, InvalidArgument, "end event was never recorded")
	open := gate(s)
	start := time.Now()
	to.Record(s)
	if _, err := to.Since(from); ResultOf(err) != InProgress {
		t.Errorf("an event that is not reached has the time %v", err)
	}
	open()
	if err := to.Synchronize(); err != nil {
		t.Fatal(err)
	}
	d, err := to.Since(from)
	if most := time.Since(start) + time.Second; err != nil || d < 0 || d > most {
		t.Errorf("%v lie between the events (%v), at most %v are possible", d, err, most)
	}
}

// A function that waits for its own stream would wait for ever.
func TestHostFuncMustNotWaitForItself(t *testing.T) {
	s := newStream(t)
	var err error
	s.HostFunc(func() { err = s.Synchronize() })
	if e := s.Synchronize(); e != nil {
		t.Fatal(e)
	}
	wantError(t, err, InvalidUsage, "host function")
}

// A panic in queued work is an error of the stream, not the end of the process.
func TestPanicOnStream(t *testing.T) {
	s := newStream(t)
	s.put(func() { panic("a test") })
	wantError(t, s.Synchronize(), InternalError, "a test")
}
