package boot

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stranger behaves badly at addr, in one of several ways, and keeps some connections in held.
func stranger(addr string, kind int, held *[]net.Conn) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return
	}
	switch kind {
	case 0: // close at once
	case 1: // reset
		c.(*net.TCPConn).SetLinger(0)
	case 2:
		c.Write([]byte{1, 2, 3})
	case 3:
		b := make([]byte, 4096)
		for i := range b {
			b[i] = byte(rand.Int())
		}
		c.Write(b)
	case 4:
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: stranger\r\n\r\n")
	case 7: // a whole hello, and a whole join, that prove nothing
		c.Write(forged(helloMagicValue, helloSize+64+macSize))
	case 8:
		c.Write(forged(joinMagicValue, joinSize))
	case 5: // the start of a real hello, then silence
		c.Write([]byte{0x4e, 0x48, 0x4c, 0x4f, 1, 0, 0, 0})
		*held = append(*held, c)
		return
	case 6: // nothing
		*held = append(*held, c)
		return
	}
	c.Close()
}

// forged are random bytes that begin like something else. Lengths inside are small, so that they are believed as far as they can be.
func forged(magic uint32, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Int())
	}
	le.PutUint32(b, magic)
	le.PutUint16(b[helloLibrary:], uint16(rand.IntN(64)))
	le.PutUint32(b[helloContact:], uint32(rand.IntN(64)))
	return b
}

// harass lets strangers come to each address until the context ends.
func harass(ctx context.Context, addrs []string) *sync.WaitGroup {
	var wg sync.WaitGroup
	for k := range 8 * len(addrs) {
		addr := addrs[k%len(addrs)]
		wg.Go(func() {
			var held []net.Conn
			for kind := k % 9; ctx.Err() == nil; kind = (kind + 1) % 9 {
				stranger(addr, kind, &held)
				if len(held) > maxGuests/2 {
					held[0].Close()
					held = held[1:]
				}
			}
			for _, c := range held {
				c.Close()
			}
		})
	}
	return &wg
}

var manyStrangers = flag.Uint64("strangers", 300, "how many strangers are to come to each listener")

func TestStrangers(t *testing.T) {
	m := newMaker(t)
	id, err := parseID(m.ID())
	if err != nil {
		t.Fatal(err)
	}
	svc, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	apart.Store(true) // so that ranks come to the listener that strangers come to
	defer apart.Store(false)
	ctx, stop := context.WithCancel(t.Context())
	wg := harass(ctx, []string{id.addrs[len(id.addrs)-1].String(), svc.addrs[len(svc.addrs)-1].String()})
	atRoot := func() (n uint64) {
		fmt.Sscanf(m.Ask("strangers"), "strangers %d", &n)
		return n
	}
	for before := svc.Strangers(); svc.Strangers() < before+*manyStrangers || atRoot() < *manyStrangers; {
		wantMet(t, 4, meetAll(m.ID(), 4, upTo(4), same(within(20))))
	}
	stop()
	wg.Wait()
	t.Logf("strangers at the maker: %d, where ranks listen: %d", atRoot(), svc.Strangers())
}

// rawRank is a rank that talks to the root by hand.
type rawRank struct {
	*caller
	t *testing.T
}

func newRawRank(t *testing.T, id []byte, rank, n int) *rawRank {
	t.Helper()
	parsed, err := parseID(id)
	if err != nil {
		t.Fatal(err)
	}
	m := &meeting{id: parsed, circle: circleOf(rank, n, 1), rank: rank, lim: within(20)}
	c, _, err := m.findRoot()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.s.close)
	return &rawRank{c, t}
}

// answer waits for what the root says in the end.
func (r *rawRank) answer() error {
	for {
		if _, done, err := r.listen(); done || err != nil {
			return err
		}
		if err := r.lim.check(); err != nil {
			return err
		}
		pollFor(nil, time.Millisecond)
	}
}

// sign makes a hello whose head was tampered with genuine again.
func (r *rawRank) sign(hello []byte) []byte {
	body := hello[:len(hello)-macSize]
	return append(body, mac(r.id.secret[:], "hccl hello", r.challenge, body)...)
}

// What the maker and ranks tell each other fits into packets that pass everywhere, also where a rank has many partners.
func TestRollCallHasSmallPackets(t *testing.T) {
	m := newMaker(t)
	r := newRawRank(t, m.ID(), 0, 2)
	if n, err := unix.GetsockoptInt(r.s.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG); err != nil || n > 1220 {
		t.Errorf("segments of %d bytes, %v", n, err)
	}
}

func TestOtherVersion(t *testing.T) {
	m := newMaker(t)
	Configure(Settings{Library: "2.99.0 /opt/other/libnccl.so.2"})
	defer Configure(Settings{})
	id := m.ID()
	done := make(chan map[int]outcome)
	go func() { done <- meetAll(id, 3, []int{0, 1}, same(within(20))) }()
	r := newRawRank(t, id, 2, 3)
	h := r.hello(r.challenge, r.nonce)
	h[helloVersion] = 9
	r.s.send(r.sign(h))
	got := <-done
	got[2] = outcome{err: r.answer()}
	for rank, o := range got {
		var version *VersionError
		if !errors.As(o.err, &version) || version.Rank != 2 {
			t.Errorf("rank %d: %v", rank, o.err)
			continue
		}
		for _, part := range []string{"rank 2", "version 9", "2.99.0 /opt/other/libnccl.so.2",
			fmt.Sprintf("speaks %d", wireVersion), rootProgram} {
			if !strings.Contains(version.Error(), part) {
				t.Errorf("rank %d: %q does not name %q", rank, version, part)
			}
		}
	}
}

func TestGarbageAfterHello(t *testing.T) {
	m := newMaker(t)
	id := m.ID()
	done := make(chan map[int]outcome)
	go func() { done <- meetAll(id, 3, []int{0, 1}, same(within(20))) }()
	r := newRawRank(t, id, 2, 3)
	r.s.send(append(r.hello(r.challenge, r.nonce), "this is no request"...))
	for rank, o := range <-done {
		var bad *RankError
		if !errors.As(o.err, &bad) || bad.Rank != 2 {
			t.Errorf("rank %d: %v", rank, o.err)
		}
	}
}

func TestRankDiesWaiting(t *testing.T) {
	m := newMaker(t)
	id := m.ID()
	r := newRawRank(t, id, 2, 4)
	r.s.send(r.hello(r.challenge, r.nonce))
	asked := false
	got := meetAll(id, 4, []int{0, 1}, func(rank int) Limit {
		lim := within(20)
		if rank == 0 {
			lim.Late = func(missing []int) {
				if asked = true; len(missing) != 1 || missing[0] != 3 {
					t.Errorf("missing: %v", missing)
				}
				r.s.close()
			}
		}
		return lim
	})
	for rank, o := range got {
		var gone *RankError
		if !errors.As(o.err, &gone) || gone.Rank != 2 || !asked {
			t.Errorf("rank %d: %v", rank, o.err)
		}
	}
}

// Random hellos, some of them with a true proof, leave the root whole. It runs under the address sanitizer.
func TestRootSurvivesRandomHellos(t *testing.T) {
	m := newMaker(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for k := range 600 {
		r := newRawRank(t, m.ID(), rng.IntN(4), 1+rng.IntN(4))
		r.self.addrs = r.id.addrs
		h := r.hello(r.challenge, r.nonce)
		for range 1 + rng.IntN(4) {
			h[rng.IntN(len(h)-macSize)] = byte(rng.Int())
		}
		if k%3 == 0 {
			le.PutUint32(h[helloRank:], rng.Uint32())
			le.PutUint32(h[helloNranks:], rng.Uint32()>>rng.IntN(32))
		}
		if k%2 == 0 {
			h = r.sign(h)
		}
		for len(h) > 0 { // in pieces, and with a tail of noise now and then
			n := 1 + rng.IntN(len(h))
			if r.s.send(h[:n]) != nil {
				break
			}
			h = h[n:]
		}
		if k%5 == 0 {
			r.s.send([]byte(hex.EncodeToString(r.nonce)))
		}
		r.s.close()
	}
	wantMet(t, 4, meetAll(m.ID(), 4, upTo(4), same(within(20))))
}
