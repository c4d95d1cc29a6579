package boot

import (
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/secure"
)

// dialing is a connection on its way to another process' Service. It never blocks: turn goes on where the descriptors allow.
type dialing struct {
	addrs   []netip.AddrPort
	key     Key
	secret  []byte
	from    int
	purpose uint8
	by      *Interface  // from which to connect; nil: by none in particular
	here    *Service    // that may be the one to reach; nil: connect at any rate
	stays   bool        // the connection is to last
	bell    int         // for a connection within here
	psk     *secure.Key // nil: none

	race    *race
	s       *stream        // after the race
	host    netip.AddrPort // who won it
	shaking *shaking       // with a pre-shared key
	welcome []byte         // what the service must answer
	retry   time.Time
	why     []string
	refused time.Time // since when it is at no address, or hangs up at our proof; zero: it may be there
	closed  bool      // it was an inbox of this process
}

// way is the interface from which to connect to an address, nil where routes may decide.
func (d *dialing) way(to netip.Addr) *Interface {
	if d.by != nil {
		return d.by
	}
	if s := current(); s != nil {
		if by := s.way(to); by != nil {
			return by
		}
	}
	if d.stays {
		return &Interface{} // any
	}
	return nil
}

func (d *dialing) close() {
	if d.race != nil {
		d.race.close()
	}
	if d.shaking != nil {
		d.shaking.h.Close()
	}
	if d.s != nil {
		d.s.close()
	}
}

func (d *dialing) pollFds(fds []unix.PollFd) []unix.PollFd {
	if d.s != nil {
		return append(fds, d.s.pollFd())
	}
	if d.race != nil {
		return d.race.pollFds(fds)
	}
	return fds
}

// pause is how long to wait at most before the next turn.
func (d *dialing) pause() time.Duration {
	if d.race != nil {
		return d.race.pause()
	}
	return tick
}

// turn returns the connection once both ends have proved the secret. Errors are retried after a pause: turn only reports them.
func (d *dialing) turn() (*stream, error) {
	if d.s != nil {
		return d.finish()
	}
	if d.race == nil {
		if time.Now().Before(d.retry) {
			return nil, nil
		}
		if s := current(); s != nil && s.closed(d.key, d.purpose) {
			d.closed = true
			return nil, d.rest(errClosed, true)
		}
		if d.here != nil && d.here.owns(d.key) && !apart.Load() {
			return d.within()
		}
		d.race = newRace(greetingMagic, [8]byte(d.key[:8]), d.addrs, d.way)
		d.addrs = d.race.addrs // whose order the reasons have
	}
	s, at, greeting, err := d.race.turn()
	if err != nil {
		return nil, d.again(err)
	}
	if s != nil {
		d.race, d.s = nil, s
		if err := d.prove(d.addrs[at], greeting); err != nil {
			return nil, d.again(err)
		}
	}
	return nil, nil
}

// within connects two ranks of this process.
func (d *dialing) within() (*stream, error) {
	if s := d.here.meetNear(d.key, d.secret, d.from, d.purpose, d.bell); s != nil {
		return s, nil
	}
	return nil, d.rest(errNobody, true)
}

// rest waits before the next attempt.
func (d *dialing) rest(err error, refused bool) error {
	if !refused {
		d.refused = time.Time{}
	} else if d.refused.IsZero() {
		d.refused = time.Now()
	}
	d.retry = time.Now().Add(retryMost / 4)
	return err
}

// refuses reports whether the other end, which listened when it gave its addresses away, has refused for so long. Of an inbox of this
// process that was closed nothing else can come: there it is a moment, in which others hear from us who are to know of it.
func (d *dialing) refuses(long time.Duration) bool {
	if d.closed {
		long = min(long, closedLong)
	}
	return !d.refused.IsZero() && time.Since(d.refused) > long
}

// prove answers the greeting of the host, inside a handshake where this process has a pre-shared key.
func (d *dialing) prove(host netip.AddrPort, greeting []byte) (err error) {
	if encrypts := greeting[challengeEncrypts] != 0; encrypts != (d.psk != nil) {
		return unlike(host, encrypts)
	}
	join := d.join(greeting)
	if d.psk == nil {
		return d.s.send(join)
	}
	d.host = host
	d.shaking, err = shake(d.s, d.psk.Dial(join, welcomeSize, d.welcomed))
	return err
}

// welcomed reports whether the service proves the secret in its turn.
func (d *dialing) welcomed(b []byte) bool {
	return le.Uint32(b) == welcomeMagicValue && hmac.Equal(b[welcomeMAC:], d.welcome)
}

// again prepares another attempt and passes on why this one failed.
func (d *dialing) again(err error) error {
	if d.race != nil {
		d.why = d.race.why
	}
	refuses := d.s != nil || d.race.none == len(d.addrs)
	d.close()
	d.race, d.s, d.shaking = nil, nil, nil
	return d.rest(err, refuses)
}

func (d *dialing) join(greeting []byte) []byte {
	b := make([]byte, joinMAC, joinSize)
	le.PutUint32(b[joinMagic:], joinMagicValue)
	le.PutUint16(b[joinVersion:], wireVersion)
	b[joinPurpose] = d.purpose
	le.PutUint32(b[joinFrom:], uint32(d.from))
	copy(b[joinKey:], d.key[:])
	rand.Read(b[joinNonce:])
	d.welcome = mac(d.secret, labelWelcome, greeting, b)
	return append(b, mac(d.secret, labelJoin, greeting, b)...)
}

func (d *dialing) finish() (*stream, error) {
	var keys *secure.Session
	done, err := false, error(nil)
	if d.shaking != nil {
		keys, err = d.shaking.turn()
		done, err = keys != nil, otherKey(d.host, err)
	} else {
		done, err = d.hear()
	}
	switch {
	case err == io.EOF:
		return nil, d.again(errLost)
	case err != nil:
		return nil, d.again(err)
	case !done:
		return nil, nil
	}
	s := &stream{fd: d.s.fd, keys: keys}
	d.s, d.shaking = nil, nil
	return s, nil
}

// hear waits for the welcome.
func (d *dialing) hear() (done bool, err error) {
	if err = d.s.flush(); err == nil {
		err = d.s.fill(welcomeSize)
	}
	if len(d.s.in) < welcomeSize {
		return false, err
	}
	if !d.welcomed(d.s.in) {
		return false, errStranger
	}
	return true, nil
}

const (
	refusedLong = time.Second
	closedLong  = 100 * time.Millisecond
)

// Dial connects to the Service that listens at addrs, for the inbox of key there, and tells it from and purpose. It tries again
// until lim ends it, or until the other end, which listened when it gave its addresses away, has refused for a second. The
// descriptor is the caller's; the other end has proved that it knows secret.
func Dial(addrs []netip.AddrPort, key Key, secret []byte, from int, purpose uint8, lim Limit) (Conn, error) {
	d := &dialing{addrs: addrs, key: key, secret: secret, from: from, purpose: purpose, psk: configured().Key}
	defer d.close()
	began := time.Now()
	for {
		s, last := d.turn()
		if s != nil {
			return Conn{s.fd, s.keys}, nil
		}
		if other := (*KeyError)(nil); errors.As(last, &other) {
			return none, other
		}
		if last != nil && d.refuses(refusedLong) {
			return none, &SilentError{-1, "refuses connections at " + d.reasons(last), true}
		}
		if err := lim.check(); err == errDeadline || err == nil && d.mute(last) && lim.silent(began) {
			return none, &SilentError{-1, "cannot be reached at " + d.reasons(last), false}
		} else if err != nil {
			return none, err
		}
		pollFor(d.pollFds(nil), d.pause())
	}
}

// mute reports whether nothing answers: no connection has been made nor refused, or last is how an attempt ended, in another way.
func (d *dialing) mute(last error) bool {
	return d.refused.IsZero() && (last != nil || d.s == nil && (d.race == nil || !d.race.connected()))
}

func (d *dialing) reasons(last error) string {
	var b strings.Builder
	if d.why == nil && d.race != nil {
		d.why = d.race.why
	}
	for i, a := range d.addrs {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
		if i < len(d.why) {
			fmt.Fprintf(&b, " (%s)", d.why[i])
		}
	}
	if last != nil && d.why == nil {
		fmt.Fprintf(&b, " (%v)", last)
	}
	return b.String()
}
