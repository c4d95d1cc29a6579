package secure

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
)

func key(t testing.TB, psk string) *Key {
	t.Helper()
	k, err := NewKey([]byte(psk))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const (
	someKey    = "a key that is at least 16 bytes"
	anotherKey = "another key, of 16 bytes at least"
)

// carry takes what from says to to, record by record, by way of change, and reports whether anything moved.
func carry(t testing.TB, from, to *Handshake, change func([]byte)) (moved bool) {
	t.Helper()
	b := from.Say()
	for len(b) > 0 {
		n, ok := Want(b)
		if !ok || n > len(b) {
			t.Fatalf("a record of %d bytes in %d", n, len(b))
		}
		record := bytes.Clone(b[:n])
		if change != nil {
			change(record)
		}
		to.Feed(record)
		b, moved = b[n:], true
	}
	return moved
}

func shake(t testing.TB, dialer, host *Handshake, change func([]byte)) {
	t.Helper()
	for carry(t, dialer, host, change) || carry(t, host, dialer, nil) {
	}
	t.Cleanup(dialer.Close)
	t.Cleanup(host.Close)
}

func pair(t testing.TB, dialer, host *Key) (d, h *Handshake) {
	t.Helper()
	d = dialer.Dial([]byte("join"), 7, func(b []byte) bool { return string(b) == "welcome" })
	h = host.Host(4, func(b []byte) []byte {
		if string(b) != "join" {
			return nil
		}
		return []byte("welcome")
	})
	return d, h
}

func sessions(t testing.TB) (a, b *Session) {
	t.Helper()
	d, h := pair(t, key(t, someKey), key(t, someKey))
	shake(t, d, h, nil)
	a, err := d.Done()
	if err != nil {
		t.Fatal(err)
	}
	if b, err = h.Done(); err != nil || a == nil || b == nil {
		t.Fatalf("sessions %v and %v: %v", a, b, err)
	}
	return a, b
}

func TestHoldersOfOneKeyTalk(t *testing.T) {
	a, b := sessions(t)
	for _, size := range []int{1, 64, 4096, MaxRecord} {
		for _, d := range [][2]*Direction{{a.Out, b.In}, {b.Out, a.In}} {
			words := bytes.Repeat([]byte("words "), size)[:size]
			record := d[0].Seal(nil, words)
			if n, err := d[1].Length(record); n != size || err != nil || len(record) != HeadSize+size+TagSize {
				t.Errorf("a record of %d bytes for %d, said to hold %d (%v)", len(record), size, n, err)
			}
			if size > 8 && bytes.Contains(record, words[:6]) {
				t.Errorf("%d bytes are readable", size)
			}
			if got, err := d[1].Open(nil, record); err != nil || !bytes.Equal(got, words) {
				t.Errorf("%d bytes came as %d: %v", size, len(got), err)
			}
		}
	}
}

// Both ends hear that the keys differ, whichever differs.
func TestOtherKeysAreRefused(t *testing.T) {
	d, h := pair(t, key(t, someKey), key(t, anotherKey))
	shake(t, d, h, nil)
	for who, end := range map[string]*Handshake{"dialer": d, "host": h} {
		if s, err := end.Done(); s != nil || !OtherKey(err) {
			t.Errorf("the %s has %v and a session %v", who, err, s != nil)
		}
	}
}

// One who has the host's identity alone, as a certificate shows it, is no dialer: the identities are not each other's.
func TestIdentitiesAreOfOneEnd(t *testing.T) {
	k := key(t, someKey)
	turned := &Key{root: k.root, dialer: k.host, host: k.host}
	d, h := pair(t, turned, k)
	shake(t, d, h, nil)
	if s, err := h.Done(); s != nil || !OtherKey(err) {
		t.Errorf("the host has %v and a session %v", err, s != nil)
	}
}

func TestWordsThatDoNotFitEndIt(t *testing.T) {
	k := key(t, someKey)
	d := k.Dial([]byte("jion"), 7, func([]byte) bool { return true })
	h := k.Host(4, func([]byte) []byte { return nil })
	shake(t, d, h, nil)
	if s, err := h.Done(); s != nil || err == nil || OtherKey(err) {
		t.Errorf("the host has %v and a session %v", err, s != nil)
	}
	if s, err := d.Done(); s != nil || err != nil {
		t.Errorf("the dialer has %v and a session %v, while it waits", err, s != nil)
	}
}

func TestNothingOfAChangedHandshakeIsBelieved(t *testing.T) {
	k := key(t, someKey)
	d, h := pair(t, k, k)
	shake(t, d, h, func(b []byte) { b[len(b)-1] ^= 1 })
	if s, _ := h.Done(); s != nil {
		t.Error("the host has a session")
	}
	if s, _ := d.Done(); s != nil {
		t.Error("the dialer has a session")
	}
}

func TestRecordsOutOfPlaceDoNotOpen(t *testing.T) {
	for name, wrong := range map[string]func(records [][]byte) []byte{
		"repeated":      func(r [][]byte) []byte { return r[0] },
		"left out":      func(r [][]byte) []byte { return r[2] },
		"other way":     func(r [][]byte) []byte { return r[3] },
		"a bit changed": func(r [][]byte) []byte { r[1][HeadSize] ^= 4; return r[1] },
		"tag changed":   func(r [][]byte) []byte { r[1][len(r[1])-1] ^= 4; return r[1] },
		"other key":     func(r [][]byte) []byte { r[1][2]++; return r[1] },
		"cut":           func(r [][]byte) []byte { return r[1][:len(r[1])-1] },
	} {
		a, b := sessions(t)
		records := [][]byte{a.Out.Seal(nil, []byte("one")), a.Out.Seal(nil, []byte("two")), a.Out.Seal(nil, []byte("three")), nil}
		b.Out.Seal(nil, []byte("one"))
		records[3] = b.Out.Seal(nil, []byte("two"))
		if _, err := b.In.Open(nil, records[0]); err != nil {
			t.Fatal(err)
		}
		if got, err := b.In.Open(nil, wrong(records)); err != ErrForged || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A key serves so many bytes. Both ends then take the next one at the same place.
func TestKeysAreRenewed(t *testing.T) {
	a, b := sessions(t)
	a.Out.left, b.In.left = 10, 10
	was := a.Out.iv
	for k := range 4 {
		got, err := b.In.Open(nil, a.Out.Seal(nil, []byte("four")))
		if err != nil || string(got) != "four" {
			t.Fatalf("record %d: %q, %v", k, got, err)
		}
	}
	if a.Out.key != 1 || a.Out.iv == was {
		t.Errorf("after 16 bytes with 10 under the first key, key %d is in use", a.Out.key)
	}
}

func TestSealingAllocatesNothing(t *testing.T) {
	a, b := sessions(t)
	words, record, out := make([]byte, MaxRecord), make([]byte, 0, HeadSize+MaxRecord+TagSize), make([]byte, 0, MaxRecord)
	if n := testing.AllocsPerRun(100, func() {
		record = a.Out.Seal(record[:0], words)
		_, _ = b.In.Open(out, record)
	}); n != 0 {
		t.Errorf("%v allocations for a record, want 0", n)
	}
}

func TestFewWords(t *testing.T) {
	k, other := key(t, someKey), key(t, anotherKey)
	sealed := k.Seal([]byte("where I am"), []byte("rank 1"), []byte("meeting"))
	if got, ok := k.Open(sealed, []byte("rank 1"), []byte("meeting")); !ok || string(got) != "where I am" {
		t.Errorf("opened as %q", got)
	}
	for name, open := range map[string]func() ([]byte, bool){
		"another key":     func() ([]byte, bool) { return other.Open(sealed, []byte("rank 1"), []byte("meeting")) },
		"another rank":    func() ([]byte, bool) { return k.Open(sealed, []byte("rank 2"), []byte("meeting")) },
		"another meeting": func() ([]byte, bool) { return k.Open(sealed, []byte("rank 1"), []byte("another")) },
		"nothing":         func() ([]byte, bool) { return k.Open(nil, []byte("rank 1"), []byte("meeting")) },
	} {
		if _, ok := open(); ok {
			t.Errorf("opened with %s", name)
		}
	}
	if k.Mark([]byte("a")) == 0 || k.Mark([]byte("a")) == other.Mark([]byte("a")) || k.Mark([]byte("a")) == k.Mark([]byte("b")) {
		t.Error("marks do not tell keys and meetings apart")
	}
}

func TestKeysOfBadLength(t *testing.T) {
	for _, psk := range []string{"", strings.Repeat("s", MinKey-1), strings.Repeat("s", MaxKey+1)} {
		if _, err := NewKey([]byte(psk)); err == nil || strings.Contains(err.Error(), "sss") {
			t.Errorf("%d bytes: %v", len(psk), err)
		}
	}
}

// A host is given anything for records. It neither panics nor has a session, and it ends.
func FuzzHandshake(f *testing.F) {
	k, err := NewKey([]byte(someKey))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(k.Dial([]byte("join"), 7, func([]byte) bool { return true }).Say())
	f.Fuzz(func(t *testing.T, b []byte) {
		h := k.Host(4, func(b []byte) []byte { return b })
		defer h.Close()
		for len(b) > 0 {
			n, ok := Want(b)
			if !ok {
				return
			}
			h.Feed(b[:min(n, len(b))])
			b = b[min(n, len(b)):]
		}
		if s, _ := h.Done(); s != nil {
			t.Error("a session without the key")
		}
	})
}

// Whatever comes in place of a record, it is refused or it is the one.
func FuzzRecord(f *testing.F) {
	a, b := sessions(f)
	whole := a.Out.Seal(nil, []byte("words"))
	f.Add(whole)
	f.Add(append(bytes.Clone(whole), 0))
	f.Fuzz(func(t *testing.T, record []byte) {
		in := *b.In
		if len(record) < HeadSize {
			return
		}
		n, err := in.Length(record)
		if err != nil || len(record) != HeadSize+n+TagSize {
			return
		}
		if got, err := in.Open(nil, record); err == nil && !bytes.Equal(record, whole) {
			t.Errorf("a forged record opened as %q", got)
		}
	})
}

func BenchmarkHandshake(b *testing.B) {
	k := key(b, someKey)
	for b.Loop() {
		d, h := pair(b, k, k)
		for carry(b, d, h, nil) || carry(b, h, d, nil) {
		}
		if s, err := d.Done(); s == nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	a, _ := sessions(b)
	for _, size := range []int{64, 4 << 10, 16 << 10, MaxRecord} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			words, record := make([]byte, size), make([]byte, 0, HeadSize+size+TagSize)
			b.SetBytes(int64(size))
			for b.Loop() {
				record = a.Out.Seal(record[:0], words)
			}
		})
	}
}
