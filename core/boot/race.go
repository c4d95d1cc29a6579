package boot

import (
	"errors"
	"io"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// race connects to the addresses of one listener, each a moment after the one before, or at once where that has failed. The first
// that greets as the listener that is meant wins, so that an address which leads nowhere, or to somebody else, costs little time.
//
// Root and Service greet alike: magic, version, the listener's tag, a nonce (HCCL_CHALLENGE_* in meet.h).
type race struct {
	magic uint32
	tag   [8]byte
	addrs []netip.AddrPort               // in the order in which they are tried
	way   func(to netip.Addr) *Interface // from which to connect; nil, or an answer of nil: the kernel chooses
	runs  []stream                       // of the addresses that have been tried
	why   []string                       // for each address, how it failed
	dead  int                            // how many have failed
	none  int                            // how many of these were refused or answered by another: the listener is not there
	since time.Time
	tried time.Time // when the last address was
	gap   time.Duration
	known int // networks that had been reached when the addresses were last put in order
}

const (
	headStart  = 60 * time.Millisecond  // of an address over the next one
	allTried   = 240 * time.Millisecond // at most, until the last one is
	answerTime = 15 * time.Millisecond  // where no connection is made for so long the next one is tried: a kernel answers, if it is there
	greetTime  = 10 * time.Second       // a listener that only a child has inherited greets when the child takes over
)

var (
	errNobody   = errors.New("no address answers")
	errStranger = errors.New("somebody else answers there")
	errSilent   = errors.New("it takes connections but says nothing")
	errClosed   = errors.New("its rank has gone")
	errLost     = errors.New("it hangs up") // it died, gave its place to another process, or does not know the secret
)

func newRace(magic uint32, tag [8]byte, addrs []netip.AddrPort, way func(netip.Addr) *Interface) *race {
	r := &race{magic: magic, tag: tag, addrs: slices.Clone(addrs), way: way, why: make([]string, len(addrs)), since: time.Now(),
		gap: min(headStart, allTried/time.Duration(max(1, len(addrs))))}
	for i := range r.why {
		r.why[i] = "no answer"
	}
	r.sort()
	r.start()
	return r
}

// sort puts those of the addresses that have not been tried in order. True: networks have been reached since that was done last, and the
// next address is on one of them.
func (r *race) sort() bool {
	s, rest := current(), r.addrs[len(r.runs):]
	if s == nil || len(rest) == 0 {
		return false
	}
	known := s.reached.count()
	if known == r.known {
		return false
	}
	r.known = known
	return s.inOrder(rest)
}

// start tries further addresses while those before have failed or have had their time.
func (r *race) start() {
	for r.sort() || r.due() {
		to, by := r.addrs[len(r.runs)], (*Interface)(nil)
		if r.way != nil {
			by = r.way(to.Addr())
		}
		fd, err := connect(to, by)
		r.runs = append(r.runs, stream{fd: fd})
		r.tried = time.Now()
		if err != nil {
			r.lose(len(r.runs)-1, err)
		}
	}
}

// due reports whether it is time for the next address. One with which there is a connection has a longer head start than one that gives
// no sign: its process may be busy with hundreds of others.
func (r *race) due() bool {
	if n := len(r.runs); n == len(r.addrs) || r.dead == n {
		return n < len(r.addrs)
	}
	since := time.Since(r.tried)
	return since >= r.gap || since >= answerTime && !r.connected()
}

// pause is how long to wait at most before the next turn.
func (r *race) pause() time.Duration {
	if len(r.runs) == len(r.addrs) {
		return tick
	}
	since, next := time.Since(r.tried), answerTime
	if since >= next {
		next = r.gap
	}
	return min(tick, max(time.Millisecond, next-since))
}

func (r *race) lose(i int, err error) {
	r.runs[i].close()
	r.dead++
	r.why[i] = err.Error()
	if err == io.EOF {
		r.why[i] = errLost.Error()
	}
	if err == unix.ECONNREFUSED || err == errStranger {
		r.none++
	}
}

// close ends all that are still on their way, and tells those that lead nowhere from those where a connection was made: there
// somebody listens, but is stopped or hangs.
func (r *race) close() {
	for i := range r.runs {
		if s := &r.runs[i]; s.fd >= 0 {
			if _, err := unix.Getpeername(s.fd); err == nil {
				r.why[i] = errSilent.Error()
			}
			s.close()
		}
	}
}

// connected reports whether a host has let a connection be made.
func (r *race) connected() bool {
	return slices.ContainsFunc(r.runs, func(s stream) bool {
		if s.fd < 0 {
			return false
		}
		_, err := unix.Getpeername(s.fd)
		return err == nil
	})
}

func (r *race) pollFds(fds []unix.PollFd) []unix.PollFd {
	for i := range r.runs {
		fds = append(fds, r.runs[i].pollFd())
	}
	return fds
}

// turn goes on with those whose descriptors are ready, and returns the winner, which address it is and its greeting once
// there is one. The others are closed then. An error ends the race.
func (r *race) turn() (won *stream, at int, greeting []byte, err error) {
	for i := range r.runs {
		s := &r.runs[i]
		if s.fd < 0 {
			continue
		}
		err := s.fill(challengeSize)
		switch {
		case len(s.in) == challengeSize && r.greets(s.in):
			won := &stream{fd: s.fd}
			s.fd = -1
			r.close()
			if s := current(); s != nil {
				s.note(r.addrs[i].Addr())
			}
			return won, i, s.in, nil
		case len(s.in) == challengeSize:
			r.lose(i, errStranger)
		case err != nil:
			r.lose(i, err)
		}
	}
	r.start()
	if r.dead == len(r.addrs) || time.Since(r.since) > greetTime {
		r.close()
		return nil, 0, nil, errNobody
	}
	return nil, 0, nil, nil
}

func (r *race) greets(b []byte) bool {
	return le.Uint32(b[challengeMagic:]) == r.magic && [8]byte(b[challengeRoot:]) == r.tag
}
