package shm

import (
	"crypto/rand"
	"sync"
)

// Key is the secret under which memory is offered. It travels over the authenticated bootstrap: whoever presents it on the socket
// is a rank of the job, and that it could connect proves that it is on this host and in this network namespace.
type Key [16]byte

// Local is this process among those of its host. There is at most one, made at first use and kept.
type Local struct {
	arena *arena
	x     *exchange
	self  *Peer

	mu      sync.Mutex
	peers   map[Key]*Peer     // guarded by mu; by the name of their process
	fetches map[[2]Key]*fetch // guarded by mu; under way, by whom is asked and for what
}

var local struct {
	mu sync.Mutex
	l  *Local // guarded by mu; nil until Open has succeeded
}

// Open returns this process's Local, which is made at the first call: a socket, an arena and one background goroutine. An
// error says what this host refuses (memory or socket); the caller takes another transport then.
func Open() (*Local, error) {
	local.mu.Lock()
	defer local.mu.Unlock()
	if local.l != nil {
		return local.l, nil
	}
	a, err := newArena(ArenaLimit)
	if err != nil {
		return nil, err
	}
	l := &Local{arena: a, peers: map[Key]*Peer{}, fetches: map[[2]Key]*fetch{}}
	if l.x, err = newExchange(l); err != nil {
		a.close()
		return nil, err
	}
	l.self = &Peer{name: l.x.name, view: view{a.base, a.size}, bells: a.base, process: self}
	bells.hang(a)
	local.l = l
	go l.x.serve()
	return l, nil
}

// fellBack reports whether this host refused memfds.
func fellBack() bool {
	l, err := Open()
	return err == nil && l.arena.reason != ""
}

// Name is the address of this process's socket, in the form that Connect and Fetch take: 16 random bytes.
func (l *Local) Name() Key { return l.x.name }

// ArenaSize is how many bytes of staging this process may have.
func (l *Local) ArenaSize() uint64 { return l.arena.size }

// Fallback tells why the arena is a file in /dev/shm instead of a memfd; "" if it is a memfd.
func (l *Local) Fallback() string { return l.arena.reason }

// Offer makes fd's memory available to whoever names key, until Withdraw. The descriptor stays the caller's.
func (l *Local) Offer(key Key, fd int) { l.x.offer(key, fd) }

// OfferArena lets whoever names key Connect to this process, until Withdraw.
func (l *Local) OfferArena(key Key) { l.x.offer(key, l.arena.fd) }

// Withdraw ends an offer.
func (l *Local) Withdraw(key Key) { l.x.withdraw(key) }

// NewKey returns a random key.
func NewKey() (k Key) {
	rand.Read(k[:]) // never fails
	return k
}
