package boot

import (
	"fmt"
	"net/netip"
)

// Attempt is a connection from one interface to one address, which is begun and looked after now and then.
type Attempt struct{ d dialing }

// Try begins one, see Dial for what it needs. An interface without an address is any.
func Try(by Interface, to netip.AddrPort, key Key, secret []byte, from int, purpose uint8) *Attempt {
	return &Attempt{dialing{addrs: []netip.AddrPort{to}, key: key, secret: secret, from: from, purpose: purpose, by: &by,
		psk: configured().Key}}
}

// Turn goes on with the attempt as far as it can. The descriptor is -1 until the other end has proved itself; an error ends the
// attempt.
func (a *Attempt) Turn() (Conn, error) {
	s, err := a.d.turn()
	if s != nil {
		return Conn{s.fd, s.keys}, nil
	}
	if err != nil {
		err = fmt.Errorf("no connection to %s", a.d.reasons(err))
	}
	return none, err
}

// Close gives the attempt up.
func (a *Attempt) Close() { a.d.close() }

// Reach begins a connection to whichever of addrs answers first, see Dial. An error that Turn reports does not end it: it tries again.
func Reach(addrs []netip.AddrPort, key Key, secret []byte, purpose uint8) *Attempt {
	return &Attempt{dialing{addrs: addrs, key: key, secret: secret, purpose: purpose, stays: true, psk: configured().Key}}
}

// Refused reports whether the other end, which listened when it gave its addresses away, has refused for a second.
func (a *Attempt) Refused() bool {
	return a.d.refuses(refusedLong)
}

// Refuses reports whether the last try was refused.
func (a *Attempt) Refuses() bool { return a.d.refuses(0) }

// Reasons are the addresses, and why each of them has led nowhere.
func (a *Attempt) Reasons() string { return a.d.reasons(nil) }
