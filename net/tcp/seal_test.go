package tcp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/secure"
	"hccl.dev/hccl/internal/secure/securetest"
	"hccl.dev/hccl/proto"
)

// keying makes the keys of a connection's ends.
type keying func(tb testing.TB) (a, b *secure.Session)

func inClear(testing.TB) (a, b *secure.Session) { return nil, nil }

// The pattern is in what crosses in clear and in nothing that crosses sealed.
func TestSealedSlicesAreUnreadable(t *testing.T) {
	pattern := bytes.Repeat([]byte("the user's data "), 4096)
	for name, keys := range map[string]keying{"clear": inClear, "sealed": securetest.Pair} {
		near, far := pair(t)
		node := newNode(0, 2)
		t.Cleanup(func() { node.Close(0) })
		t.Cleanup(func() { unix.Close(far) })
		session, _ := keys(t)
		if err := node.AddRail(1, 0, near, session); err != nil {
			t.Fatal(err)
		}
		put(t, outOf(t, node, proto.Pair, 0, 1), pattern)
		wire := readAll(t, far, len(pattern))
		if found := bytes.Contains(wire, pattern[:16]); found != (name == "clear") {
			t.Errorf("%s: the data can be read: %v", name, found)
		}
	}
}

// readAll is what arrives at fd until it is more than n bytes.
func readAll(t *testing.T, fd, n int) (wire []byte) {
	t.Helper()
	var b [8192]byte
	for len(wire) <= n {
		if ready, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(hang.Milliseconds())); ready == 0 {
			t.Fatalf("%d bytes came, not more than %d", len(wire), n)
		}
		if k, err := unix.Read(fd, b[:]); err == nil {
			wire = append(wire, b[:k]...)
		}
	}
	return wire
}

// between passes on what comes from one side of a connection to the other one's way in, changed.
func between(t *testing.T, change func([]byte) []byte) (err error, a *node) {
	t.Helper()
	nodes := []*node{newNode(0, 2), newNode(1, 2)}
	x, mx := pair(t)
	my, y := pair(t)
	keysA, keysB := securetest.Pair(t)
	for r, end := range []struct {
		fd   int
		keys *secure.Session
	}{{x, keysA}, {y, keysB}} {
		if err := nodes[r].AddRail(1-r, 0, end.fd, end.keys); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nodes[r].Close(0) })
	}
	put(t, outOf(t, nodes[0], proto.Pair, 0, 1), []byte("the first slice"))
	first := readAll(t, mx, 64)
	put(t, outOf(t, nodes[0], proto.Pair, 1, 1), []byte("the second one"))
	second := readAll(t, mx, 64)
	in := inOf(t, nodes[1], proto.Pair, 0, 0)
	unix.Write(my, first)
	nodes[1].until(t, "the first slice", func() bool { _, ok := get(t, in); return ok })
	unix.Write(my, change(append(second, first...)))
	unix.Close(my)
	nodes[1].until(t, "the end", func() bool { return nodes[1].peers[0].lost() != nil })
	unix.Close(mx)
	return nodes[1].peers[0].lost(), nodes[1]
}

// What a man in the middle does is noticed, said, and delivers nothing.
func TestForgedRecordsEndTheConnection(t *testing.T) {
	for name, change := range map[string]func(b []byte) []byte{
		"a bit of the data": func(b []byte) []byte { b[secure.HeadSize+headerSize+6] ^= 1; return b },
		"the tag":           func(b []byte) []byte { b[secure.HeadSize+headerSize+14+3] ^= 1; return b },
		"the length":        func(b []byte) []byte { b[4]--; return b },
		"the version":       func(b []byte) []byte { b[0]++; return b },
		"the order":         func(b []byte) []byte { return b[len(b)-len(b)/2:] },
	} {
		err, node := between(t, change)
		var forged *ForgedError
		if !errors.As(err, &forged) || forged.Rank != 0 || !strings.Contains(err.Error(), "rank 0") {
			t.Errorf("%s: %v", name, err)
		}
		if p, _, _ := inOf(t, node, proto.Pair, 1, 0).Peek(); p != 0 {
			t.Errorf("%s: the second slice was delivered", name)
		}
	}
}

// A connection that is cut, between records or in one, has ended without a goodbye.
func TestCutStreamsAreNoGoodbye(t *testing.T) {
	for name, change := range map[string]func(b []byte) []byte{
		"before a record": func(b []byte) []byte { return nil },
		"in a record":     func(b []byte) []byte { return b[:50] },
	} {
		err, _ := between(t, change)
		var gone *GoneError
		if !errors.As(err, &gone) || gone.Orderly {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Records come in pieces of any length, into room of any length: what is opened is what was sealed, in order.
func TestRecordsOfAnyCut(t *testing.T) {
	a, b := securetest.Pair(t)
	near, far := pair(t)
	defer unix.Close(near)
	defer unix.Close(far)
	rng := rand.New(rand.NewPCG(1, 2))
	s, u := newSealing(a), newUnsealing(b)
	var sent, got []byte
	for n := 0; len(got) < 4<<20; n++ {
		if len(sent) < 4<<20 && !s.pending() {
			some := content(0, n, 2+rng.IntN(1<<rng.IntN(19)))
			k, e := s.send(near, []unix.Iovec{iovec(some[:len(some)/2]), iovec(some[len(some)/2:])})
			if e != 0 && e != unix.EAGAIN {
				t.Fatal(e)
			}
			sent = append(sent, some[:k]...)
		} else if s.pending() {
			s.send(near, nil)
		}
		room := make([]byte, 2+rng.IntN(1<<rng.IntN(19)))
		cut := 1 + rng.IntN(len(room)-1)
		k, _, err := u.recv(far, []unix.Iovec{iovec(room[:cut]), iovec(room[cut:])}, len(room))
		if err != nil && err != unix.EAGAIN {
			t.Fatal(err)
		}
		got = append(got, room[:k]...)
	}
	if !bytes.HasPrefix(sent, got[:min(len(got), len(sent))]) || len(got) > len(sent) {
		t.Fatalf("of %d bytes %d came, and they differ", len(sent), len(got))
	}
}

func iovec(b []byte) (v unix.Iovec) {
	v.Base = &b[0]
	v.SetLen(len(b))
	return v
}

// FuzzUnsealing gives a connection anything for records: nothing of it is delivered, and it ends.
func FuzzUnsealing(f *testing.F) {
	a, b := securetest.Pair(f)
	record := a.Out.Seal(nil, []byte("words"))
	f.Add(record[:20])
	f.Add(append(bytes.Clone(record[:len(record)-1]), record[len(record)-1]^1))
	f.Add([]byte{1, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, wire []byte) {
		if bytes.HasPrefix(wire, record) || len(wire) > 100<<10 {
			return
		}
		near, far := pair(t)
		defer unix.Close(near)
		unix.Write(far, wire)
		unix.Close(far)
		in := *b.In
		u := newUnsealing(&secure.Session{In: &in})
		room := make([]byte, 1000)
		for {
			n, _, err := u.recv(near, []unix.Iovec{iovec(room)}, len(room))
			if n > 0 {
				t.Fatalf("%q is believed", room[:n])
			}
			if err == secure.ErrForged || err == io.EOF || err == io.ErrUnexpectedEOF {
				return
			}
			if err != unix.EAGAIN {
				t.Fatal(err)
			}
		}
	})
}
