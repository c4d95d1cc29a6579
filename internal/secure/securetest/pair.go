// Package securetest makes keys and sessions for tests of packages that use them.
package securetest

import (
	"testing"

	"hccl.dev/hccl/internal/secure"
)

// Key is a key of its own for each name.
func Key(tb testing.TB, name string) *secure.Key {
	tb.Helper()
	k, err := secure.NewKey([]byte("the key of a test, called " + name))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// Pair is the two ends of a connection.
func Pair(tb testing.TB) (a, b *secure.Session) {
	tb.Helper()
	k := Key(tb, "pair")
	d := k.Dial([]byte("?"), 1, func(b []byte) bool { return b[0] == '!' })
	h := k.Host(1, func([]byte) []byte { return []byte("!") })
	for carry(tb, d, h) || carry(tb, h, d) {
	}
	a, err := d.Done()
	if err != nil {
		tb.Fatal(err)
	}
	if b, err = h.Done(); err != nil {
		tb.Fatal(err)
	}
	return a, b
}

func carry(tb testing.TB, from, to *secure.Handshake) (moved bool) {
	tb.Helper()
	for b := from.Say(); len(b) > 0; moved = true {
		n, ok := secure.Want(b)
		if !ok || n > len(b) {
			tb.Fatalf("a record of %d bytes in %d", n, len(b))
		}
		to.Feed(b[:n])
		b = b[n:]
	}
	return moved
}
