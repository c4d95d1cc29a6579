package boot

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// near is one end of a connection between two ranks of this process, in memory: hundreds of ranks as threads would need thousands of
// descriptors in the rounds.
type near struct {
	mu    *sync.Mutex // of both ends
	other *near
	got   []byte // guarded by mu: what the other end has sent
	shut  bool   // guarded by mu
	bell  int    // guarded by mu: an eventfd that is rung for this end; -1: none
}

// apart has ranks of this process connect as if they were in several, for tests.
var apart atomic.Bool

// pair makes both ends; bell is that of the first.
func pair(bell int) (a, b *near) {
	mu := new(sync.Mutex)
	a, b = &near{mu: mu, bell: bell}, &near{mu: mu, bell: -1}
	a.other, b.other = b, a
	return a, b
}

// close: the bell may be closed afterwards.
func (e *near) close() {
	e.mu.Lock()
	e.shut, e.bell = true, -1
	e.other.ring()
	e.mu.Unlock()
}

// ring wakes the rank of this end, under mu.
func (e *near) ring() {
	if e.bell >= 0 {
		ringBell(e.bell)
	}
}

// hearBy has what comes ring a bell from now on; what came before is looked at anyway.
func (s *stream) hearBy(bell int) {
	if s.near != nil {
		s.near.mu.Lock()
		s.near.bell = bell
		s.near.mu.Unlock()
	}
}

// give hands b over, of which the caller keeps nothing.
func (e *near) give(b []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.other.shut {
		return unix.EPIPE
	}
	if len(e.other.got) == 0 {
		e.other.got = b
	} else {
		e.other.got = append(e.other.got, b...)
	}
	e.other.ring()
	return nil
}

// take appends what has come to in, up to most bytes. io.EOF: the other end has closed.
func (e *near) take(in []byte, most int) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.got), most-len(in))
	in, e.got = append(in, e.got[:n]...), e.got[n:]
	if len(e.got) == 0 {
		e.got = nil
	}
	if len(in) < most && e.other.shut {
		return in, io.EOF
	}
	return in, nil
}

// meetNear connects to an inbox of this process, as Dial does to one elsewhere; bell is rung at what comes back. Nil: nobody expects it.
func (s *Service) meetNear(key Key, secret []byte, from int, purpose uint8, bell int) *stream {
	s.mu.Lock()
	box := s.inboxes[key]
	s.mu.Unlock()
	if box == nil || !bytes.Equal(box.secret, secret) {
		return nil
	}
	a, b := pair(bell)
	if !box.put(arrival{purpose: purpose, from: from, Conn: none, near: b}) {
		return nil
	}
	return &stream{fd: -1, near: a}
}
