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
	magic   uint32
	tag     [8]byte
	addrs   []netip.AddrPort               // in the order in which they are tried
	way     func(to netip.Addr) *Interface // from which to connect; nil, or an answer of nil: the kernel chooses
	runs    []stream                       // of the addresses that have been tried
	why     []string                       // for each address, how it failed
	dead    int                            // how many have failed
	none    int                            // how many of these were refused: nobody listens there
	since   time.Time
	another time.Time // when the next address is tried
	gap     time.Duration
}

const (
	headStart = 60 * time.Millisecond  // of an address over the next one
	allTried  = 240 * time.Millisecond // at most, until the last one is
	greetTime = 10 * time.Second       // a listener that only a child has inherited greets when the child takes over
)

var (
	errNobody   = errors.New("no address answers")
	errStranger = errors.New("somebody else answers there")
	errSilent   = errors.New("it takes connections but says nothing")
	errClosed   = errors.New("its rank has gone")
	errLost     = errors.New("it hangs up") // it died, gave its place to another process, or does not know the secret
)

func newRace(magic uint32, tag [8]byte, addrs []netip.AddrPort, way func(netip.Addr) *Interface) *race {
	if s := current(); s != nil {
		addrs = s.inOrder(addrs)
	}
	r := &race{magic: magic, tag: tag, addrs: addrs, way: way, why: make([]string, len(addrs)), since: time.Now(),
		gap: min(headStart, allTried/time.Duration(max(1, len(addrs))))}
	for i := range r.why {
		r.why[i] = "no answer"
	}
	r.start()
	return r
}

// start tries further addresses while those before have failed or have had their time.
func (r *race) start() {
	for i := len(r.runs); i < len(r.addrs) && (r.dead == i || time.Now().After(r.another)); i++ {
		var by *Interface
		if r.way != nil {
			by = r.way(r.addrs[i].Addr())
		}
		fd, err := connect(r.addrs[i], by)
		r.runs = append(r.runs, stream{fd: fd})
		r.another = time.Now().Add(r.gap)
		if err != nil {
			r.lose(i, err)
		}
	}
}

func (r *race) lose(i int, err error) {
	r.runs[i].close()
	r.dead++
	r.why[i] = err.Error()
	if err == io.EOF {
		r.why[i] = errLost.Error()
	}
	if err == unix.ECONNREFUSED {
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
