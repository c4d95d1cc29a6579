package core

import (
	"slices"
	"time"
)

// Waiting for requests. A limit of 0 only looks, NoLimit waits for as long as it takes, which the limits of operations bound. A limit
// that is over ends the wait with errInProgress and does nothing to the requests.

// Err is how a request ended: nil, an error, or errInProgress if it is not over.
func (r *Request) Err() error {
	select {
	case <-r.done:
		return r.err
	default:
		return errInProgress
	}
}

// Done is closed when the request is over.
func (r *Request) Done() <-chan struct{} { return r.done }

// Status is what a receive has taken, once it is over.
func (r *Request) Status() Status {
	<-r.done
	return r.status
}

// WaitAll waits until all are over, and returns the error of the first in the list that has one.
func WaitAll(list []*Request, limit time.Duration) (err error) {
	var late <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		late = t.C
	}
	for _, r := range list {
		if e := r.await(late, limit == 0); e == errInProgress {
			return e
		} else if err == nil {
			err = e
		}
	}
	return err
}

func (r *Request) await(late <-chan time.Time, looks bool) error {
	if looks {
		return r.Err()
	}
	select {
	case <-r.done:
		return r.err
	case <-late:
		return r.Err()
	}
}

// WaitAny waits until one is over: its place in the list and its error. -1 and errInProgress: none is.
func WaitAny(list []*Request, limit time.Duration) (int, error) {
	for k, r := range list {
		if err := r.Err(); err != errInProgress {
			return k, err
		}
	}
	if limit == 0 || len(list) == 0 {
		return -1, errInProgress
	}
	any := make(chan struct{}, len(list))
	watch(list, any)
	defer unwatch(list, any)
	var late <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-any:
	case <-late:
	}
	return WaitAny(list, 0)
}

// watch has any told when one of list is over, also if it is so already.
func watch(list []*Request, any chan struct{}) {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	for _, r := range list {
		if r.over {
			any <- struct{}{}
		} else {
			r.watchers = append(r.watchers, any)
		}
	}
}

func unwatch(list []*Request, any chan struct{}) {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	for _, r := range list {
		r.watchers = slices.DeleteFunc(r.watchers, func(w chan struct{}) bool { return w == any })
	}
}

// Notify has f called by a goroutine of the library when the request is over, also if it is so already. A request has one such.
func (r *Request) Notify(f func()) error {
	scheduler.mu.Lock()
	if r.notify != nil {
		scheduler.mu.Unlock()
		return failf(InvalidUsage, "the request has a callback already")
	}
	r.notify = f
	if r.over {
		r.comm.requests.calls.add(f)
	}
	scheduler.mu.Unlock()
	return nil
}

// roll is the requests that programs hold by number.
var roll roster[Request]

// KeepRequest gives a request a number; ForgetRequest takes it back: the request goes on, and nobody can ask for it any more.
func KeepRequest(r *Request) uint64 { return roll.add(r) }

// FindRequest returns the request with this number, nil if there is none (any more).
func FindRequest(number uint64) *Request { return roll.find(number) }

// ForgetRequest reports whether the number was there.
func ForgetRequest(number uint64) bool { return roll.remove(number) }
