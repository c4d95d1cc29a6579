package boot

import (
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/secure"
	"hccl.dev/hccl/internal/secure/securetest"
)

// with has this process use a key until the test ends.
func with(t *testing.T, key *secure.Key) {
	t.Helper()
	was := configured()
	set := was
	set.Key = key
	Configure(set)
	t.Cleanup(func() { Configure(was) })
}

func TestMeetingWithAKey(t *testing.T) {
	m := newMaker(t)
	with(t, securetest.Key(t, "one"))
	apart.Store(true)
	defer apart.Store(false)
	for _, n := range []int{2, 3, 8} {
		wantMet(t, n, meetAll(m.ID(), n, upTo(n), same(within(20))))
	}
}

// Ranks that have different keys, or of which one has none, are all refused at the roll call, and hear whose fault it is.
func TestRollCallComparesKeys(t *testing.T) {
	one, two := securetest.Key(t, "one"), securetest.Key(t, "two")
	svc := testService(t)
	m := newMaker(t)
	for name, keys := range map[string][]*secure.Key{
		"another":     {one, one, two},
		"none":        {one, one, nil},
		"one for all": {nil, nil, two},
	} {
		id, err := parseID(m.ID())
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for r, key := range keys {
			all.Go(func() {
				self := contact{svc.NewKey(), svc.addrs}
				at := circleOf(r, len(keys), 1)
				_, err := (&meeting{id: id, circle: at, rank: r, lim: within(10), self: self, key: key}).rollCall()
				var differ *KeyError
				if !errors.As(err, &differ) || !strings.Contains(err.Error(), "rank 2") || !strings.Contains(err.Error(), keyFileName) {
					t.Errorf("%s: rank %d: %v", name, r, err)
				}
			})
		}
		all.Wait()
	}
}

const keyFileName = "HCCL_ENCRYPTION_KEY_FILE"

// Nobody is let in without the key, and a dialer hears why at once.
func TestDialerNeedsTheKey(t *testing.T) {
	one, two := securetest.Key(t, "one"), securetest.Key(t, "two")
	svc := testService(t)
	for name, keys := range map[string][2]*secure.Key{"another": {one, two}, "none": {one, nil}, "one too many": {nil, two}} {
		with(t, keys[0])
		door, secret := svc.NewKey(), []byte("secret")
		box := svc.Expect(door, secret)
		d := &dialing{addrs: svc.Addrs(), key: door, secret: secret, from: 1, purpose: 7, psk: keys[1]}
		var err error
		settled(t, func() bool {
			var s *stream
			s, err = d.turn()
			return s != nil || errors.As(err, new(*KeyError))
		})
		if !errors.As(err, new(*KeyError)) || !strings.Contains(err.Error(), keyFileName) {
			t.Errorf("%s: %v", name, err)
		}
		if _, ok, _, _ := box.take(func(arrival) bool { return true }); ok {
			t.Errorf("%s: it was let in", name)
		}
		d.close()
		box.Close()
	}
}

// Who has the key and not the secret of the communicator is a stranger.
func TestKeyIsNoSecret(t *testing.T) {
	with(t, securetest.Key(t, "one"))
	svc := testService(t)
	door := svc.NewKey()
	box := svc.Expect(door, []byte("secret"))
	defer box.Close()
	before := svc.Strangers()
	if _, err := Dial(svc.Addrs(), door, []byte("guess"), 0, 1, within(0.3)); err == nil {
		t.Error("a wrong secret was accepted")
	}
	settled(t, func() bool { return svc.Strangers() > before })
}

// What begins no handshake is sent away, and counted.
func TestStrangersAtAnEncryptedDoor(t *testing.T) {
	with(t, securetest.Key(t, "one"))
	svc := testService(t)
	local := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), svc.addrs[0].Port())
	for _, words := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff", "\x16\x03\x01\x00\x04junk"} {
		before := svc.Strangers()
		fd, err := connect(local, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &stream{fd: fd}
		settled(t, func() bool { return s.fill(challengeSize) == nil && len(s.in) == challengeSize })
		s.in = nil
		s.send([]byte(words))
		settled(t, func() bool { return svc.Strangers() > before })
		s.close()
	}
}

// A stream with keys carries any number of bytes, says nothing readable, and notices a change.
func TestSealedStream(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	a, b := securetest.Pair(t)
	from, to := stream{fd: fds[0], keys: a}, stream{fd: fds[1], keys: b}
	words := strings.Repeat("words of a rank ", 10_000)
	if err := from.send([]byte(words)); err != nil {
		t.Fatal(err)
	}
	settled(t, func() bool {
		return from.flush() == nil && to.fill(len(words)-5) == nil && len(to.in) == len(words)-5
	})
	if to.fill(len(words)) != nil || string(to.in) != words {
		t.Errorf("%d bytes came of %d", len(to.in), len(words))
	}
	record := a.Out.Seal(nil, []byte(words[:100]))
	record[30] ^= 1
	unix.Write(fds[0], record)
	if err := to.fill(len(words) + 100); err != secure.ErrForged || string(to.in) != words {
		t.Errorf("a changed record: %v", err)
	}
}
