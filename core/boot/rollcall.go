package boot

import (
	"crypto/rand"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// How the roll call waits.
const (
	retryFirst, retryMost = 10 * time.Millisecond, 200 * time.Millisecond
	refusedFor            = 10 * time.Second                  // a root whose every address refuses for so long has ended
	askFirst, askEvery    = 3 * time.Second, 10 * time.Second // when the root is asked who is missing
	lastWord              = 500 * time.Millisecond            // for the root's answer to a rank that gives up
)

// rollCall says hello to the root and returns the partners that it names once all ranks have come.
func (m *meeting) rollCall() ([]partner, error) {
	alive := time.Now() // when the root last gave a sign of life, or could have
	heard := alive      // when its host last let a connection be made
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		start := time.Now()
		c, race, err := m.findRoot()
		if err == nil {
			var ps []partner
			ps, err = c.attend()
			c.s.close()
			if err != errLost {
				return ps, err
			}
			race.why[c.at] = errLost.Error()
		}
		if err == errNobody && race.none < len(race.addrs) || time.Since(start) > time.Second {
			alive = time.Now() // it may just be hard to reach, or another process takes over
		}
		if err == errLost || slices.Contains(race.why, errSilent.Error()) {
			heard = time.Now()
		}
		if err == errNobody || err == errLost {
			err = m.pause(wait)
		}
		if err == errDeadline || err == nil && !m.id.fixed && (time.Since(alive) > refusedFor || m.lim.silent(heard)) {
			return nil, &UnreachableError{race.addrs, race.why, m.id.fixed, m.id.left}
		}
		if err != nil {
			return nil, err
		}
	}
}

// pause waits for d, or until the limit ends it.
func (m *meeting) pause(d time.Duration) error {
	for until := time.Now().Add(d); time.Now().Before(until); {
		if err := m.lim.check(); err != nil {
			return err
		}
		pollFor(nil, min(tick, time.Until(until)))
	}
	return m.lim.check()
}

// findRoot tries all addresses of the id once. The race tells why it found none. A rank that is aborted gets a moment for it all the
// same: only if it says hello and goodbye do the others learn that they need not wait for it.
func (m *meeting) findRoot() (*caller, *race, error) {
	r := newRace(challengeMagicValue, m.id.root, m.id.addrs, nil)
	var aborted time.Time
	for {
		s, at, challenge, err := r.turn()
		if err != nil {
			return nil, r, err
		}
		if s != nil {
			m.root = r.addrs[at]
			c := &caller{meeting: m, s: s, at: at, challenge: challenge, nonce: make([]byte, 16)}
			rand.Read(c.nonce)
			return c, r, nil
		}
		if m.lim.silent(r.since) {
			r.close()
			return nil, r, errNobody
		}
		if err := m.lim.check(); err != nil {
			if aborted.IsZero() {
				aborted = time.Now()
			}
			if err == errDeadline || time.Since(aborted) > lastWord/2 {
				r.close()
				return nil, r, err
			}
		}
		pollFor(r.pollFds(nil), r.pause()) // a connection that fails is ready too, with an error
	}
}

// caller is a rank at the roll call.
type caller struct {
	*meeting
	s         *stream
	at        int // which of the id's addresses
	challenge []byte
	nonce     []byte
	serial    uint32 // answers so far
	missing   []int  // as the root said last
}

// attend says hello and waits until the root has answered for good.
func (c *caller) attend() ([]partner, error) {
	if c.s.send(c.hello(c.challenge, c.nonce)) != nil {
		return nil, errLost
	}
	next := time.Now().Add(askFirst)
	for {
		ps, done, err := c.listen()
		if done || err != nil {
			return ps, err
		}
		if err := c.lim.check(); err != nil {
			return c.giveUp(err)
		}
		if time.Now().After(next) {
			next = time.Now().Add(askEvery)
			if c.s.send(request(ask)) != nil {
				return nil, errLost
			}
		}
		pollFor([]unix.PollFd{c.s.pollFd()}, tick)
	}
}

// listen takes the answers that have arrived.
func (c *caller) listen() (ps []partner, done bool, err error) {
	if c.s.flush() != nil {
		return nil, false, errLost
	}
	end := c.s.fill(answerSize + maxAnswer + macSize)
	for {
		a, rest, ok := cutAnswer(c.s.in, c.id.secret[:], c.nonce, c.challenge, c.serial)
		if !ok {
			return nil, false, errLost
		}
		c.s.in = rest
		if a == nil {
			break
		}
		c.serial++
		if ps, done, err := c.take(a); done || err != nil {
			return ps, done, err
		}
	}
	if end != nil {
		end = errLost
	}
	return nil, false, end
}

func (c *caller) take(a *answer) (ps []partner, done bool, err error) {
	switch a.kind {
	case kindGo:
		ps, ok := c.decodeGo(a.payload)
		if !ok {
			return nil, true, &RankError{c.rank, "the roll call at " + c.root.String() + " gave an answer that makes no sense"}
		}
		return ps, true, nil
	case kindFailed:
		f, ok := decodeFailed(a.payload)
		if !ok {
			return nil, true, &RankError{c.rank, "the roll call at " + c.root.String() + " gave an answer that makes no sense"}
		}
		return nil, true, c.refusal(f)
	case kindAbsent:
		if len(a.payload) >= 4 {
			c.missing = decodeRanks(a.payload[4:])
		}
		return nil, true, nil
	case kindMissing:
		if len(a.payload) >= 4 {
			c.missing = decodeRanks(a.payload[4:])
		}
		if c.lim.Late != nil {
			c.lim.Late(c.missing)
		}
	}
	return nil, false, nil
}

// giveUp tells the root that this rank will not wait any longer, which ends the roll call for all, and hears who was missing.
func (c *caller) giveUp(cause error) ([]partner, error) {
	if f := newsOf(cause, c.rank); cause != errDeadline && f.why != whyAborted { // a speaker's part has failed
		_, _ = c.errand(0, herald, f.encode(maxContact))
		return nil, cause
	}
	if cause != errDeadline {
		c.s.send(request(askAbort)) // a root that does not hear it sees the connection end
		return nil, cause
	}
	c.s.send(request(askTimeout))
	for until := time.Now().Add(lastWord); time.Now().Before(until); {
		ps, done, err := c.listen()
		if done {
			return ps, err // err is nil where the last rank came just in time
		}
		if err != nil {
			break
		}
		pollFor([]unix.PollFd{c.s.pollFd()}, time.Until(until))
	}
	return nil, &AbsentError{c.missing, c.n, c.rank, c.root}
}
