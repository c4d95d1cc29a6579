package boot

import "net/netip"

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
