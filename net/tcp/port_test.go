package tcp

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"hccl.dev/hccl/internal/secure/securetest"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/porttest"
)

var sizes = []int{0, 1, 7, 8, 63, 64, 1023, 1024, 1025, 4031, 4032, 4033, 4096, 4097, 65536, 100_001, MaxSlice - 1, MaxSlice}

// content is the n bytes of a slice: they depend on who wrote it and on its number, so that a mix-up shows.
func content(writer, number, n int) []byte {
	rng := rand.New(rand.NewPCG(uint64(writer), uint64(number)))
	b := make([]byte, n)
	for i := 0; i < len(b); i += 61 {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// odd is a small size that both ends know.
func odd(writer, number int) int { return (number*37 + writer*101) % 300 }

func TestPortsConform(t *testing.T) {
	for name, wire := range map[string]wiring{"unix": pair, "tcp": loopback, "sealed": loopback} {
		keys := inClear
		if name == "sealed" {
			keys = securetest.Pair
		}
		t.Run(name, func(t *testing.T) {
			porttest.Conformance(t, func(t *testing.T, n int) porttest.Fixture {
				nodes := sealedBy(t, n, 1, wire, keys)
				f := porttest.Fixture{MaxSlice: MaxSlice}
				for _, d := range nodes {
					d.Take()
					f.Ports = append(f.Ports, d)
				}
				f.Poll = func() {
					for _, d := range nodes {
						d.Poll()
					}
				}
				return f
			})
		})
	}
}

func TestSlicesOfEverySizeArriveInOrder(t *testing.T) {
	eachWay(t, 2, func(t *testing.T, nodes []*node) {
		for _, kind := range []proto.Kind{proto.Pair, proto.All, proto.Msg} {
			out, in := outOf(t, nodes[0], kind, 5, 1), inOf(t, nodes[1], kind, 5, 0)
			tag := proto.Tag{Lane: 3, Seq: 1 << 40, Hash: 1<<63 | 5}
			out.Begin(tag, 1)
			in.Begin(tag)
			sent, got := 0, 0
			for got < 3*len(sizes) {
				for sent < 3*len(sizes) && put(t, out, content(0, sent, sizes[sent%len(sizes)])) {
					sent++
				}
				if sent == got { // the slots are free, and the other end does not know it yet
					nodes[0].until(t, "room", func() bool { return put(t, out, content(0, sent, sizes[sent%len(sizes)])) })
					sent++
				}
				nodes[0].Poll()
				nodes[1].until(t, "slice", func() bool {
					nodes[0].Poll()
					s, ok := get(t, in)
					if ok && !bytes.Equal(s, content(0, got, sizes[got%len(sizes)])) {
						t.Fatalf("kind %d: slice %d differs", kind, got)
					}
					return ok
				})
				got++
			}
		}
	})
}

func TestSlotsAreBounded(t *testing.T) {
	eachWay(t, 2, func(t *testing.T, nodes []*node) {
		out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
		n := 0
		for put(t, out, []byte{byte(n)}) {
			n++
		}
		if n != slots || out.Blocker() != 1 {
			t.Fatalf("%d slices committed, blocked by %d, want %d and 1", n, out.Blocker(), slots)
		}
		for i := range 3 * slots { // what is released is written again, without end
			nodes[1].until(t, "slice", func() bool {
				s, ok := get(t, in)
				if ok && s[0] != byte(i) {
					t.Fatalf("slice %d is %d", i, s[0])
				}
				return ok
			})
			if i%(slots/2) == slots/2-1 {
				nodes[0].until(t, "room for more than half of the slots", func() bool { // of the rest the writer may hear later
					for put(t, out, []byte{byte(n)}) {
						n++
					}
					return n > i+1+slots/2
				})
				if n > i+1+slots {
					t.Fatalf("%d slices committed, %d read", n, i+1)
				}
			}
		}
	})
}

func TestOneSliceReachesAllOthers(t *testing.T) {
	eachWay(t, 4, func(t *testing.T, nodes []*node) {
		out := outOf(t, nodes[2], proto.All, 1, 0)
		slow := inOf(t, nodes[3], proto.All, 1, 2)
		for i := range slots {
			want := content(2, i, 20_000)
			if !put(t, out, want) {
				t.Fatal("no room")
			}
			for _, r := range []int{0, 1} {
				in := inOf(t, nodes[r], proto.All, 1, 2)
				nodes[r].until(t, "slice", func() bool {
					s, ok := get(t, in)
					if ok && !bytes.Equal(s, want) {
						t.Fatal("content differs")
					}
					return ok
				})
			}
		}
		nodes[2].until(t, "acks of the fast readers", func() bool { return out.Blocker() == 3 })
		if p, err := out.Reserve(1, 0); p != 0 || err != nil {
			t.Fatalf("Reserve = %v, %v while rank 3 reads nothing", p, err)
		}
		for range slots {
			nodes[3].until(t, "slice", func() bool { _, ok := get(t, slow); return ok })
		}
		nodes[2].until(t, "room", func() bool { return out.Blocker() < 0 })
	})
}

func TestAnotherOperationsSliceIsNotDelivered(t *testing.T) {
	nodes := mesh(t, 2, pair)
	out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
	right := proto.Tag{Lane: 1, Seq: 2, Hash: 3}
	for _, wrong := range []proto.Tag{{Lane: 0, Seq: 2, Hash: 3}, {Lane: 1, Seq: 3, Hash: 3}, {Lane: 1, Seq: 2, Hash: 4}} {
		out.Begin(right, 1)
		put(t, out, []byte("x"))
		in.Begin(wrong)
		nodes[1].until(t, "slice", func() bool { _, n, err := in.Peek(); return n > 0 || err != nil })
		if p, _, err := in.Peek(); !errors.Is(err, proto.ErrTag) || p != 0 {
			t.Fatalf("Peek = %v, %v, want ErrTag", p, err)
		}
		in.Begin(right) // it stays and can be read by who asks for it
		if b, ok := get(t, in); !ok || string(b) != "x" {
			t.Fatalf("got %q, %v", b, ok)
		}
	}
}

func TestPortToOneself(t *testing.T) {
	d := newNode(0, 1)
	defer d.Close(0)
	out, in := outOf(t, d, proto.Msg, 0, 0), inOf(t, d, proto.Msg, 0, 0)
	for range 3 {
		n := 0
		for put(t, out, []byte{byte(n)}) {
			n++
		}
		if n != slots || out.Blocker() != 0 {
			t.Fatalf("%d slices, blocked by %d", n, out.Blocker())
		}
		for i := range n {
			if b, ok := get(t, in); !ok || b[0] != byte(i) {
				t.Fatalf("slice %d: %v %v", i, b, ok)
			}
		}
	}
	all := outOf(t, d, proto.All, 0, 0)
	if !put(t, all, []byte("nobody reads")) {
		t.Error("a port without readers has no room")
	}
}

func TestPortsThatCannotBe(t *testing.T) {
	d := newNode(1, 3)
	for _, c := range []struct {
		kind          proto.Kind
		channel, peer int
	}{{proto.Pair, -1, 0}, {proto.Pair, MaxChannels, 0}, {proto.Pair, 0, 3}, {proto.Msg, 0, -1}, {proto.Msg + 1, 0, 0}} {
		if _, err := d.Out(c.kind, c.channel, c.peer); err == nil {
			t.Errorf("Out(%v) has no error", c)
		}
		if _, err := d.In(c.kind, c.channel, c.peer); err == nil {
			t.Errorf("In(%v) has no error", c)
		}
	}
	if _, err := d.In(proto.All, 0, 1); err == nil {
		t.Error("reading the own port to all has no error")
	}
	if _, err := outOf(t, d, proto.Pair, 0, 0).Reserve(MaxSlice+1, 0); err == nil {
		t.Error("a slice that is too large has no error")
	}
	if err := d.Control(0, make([]byte, MaxControl+1)); err == nil || !strings.Contains(err.Error(), "2049 bytes") {
		t.Errorf("a message that is too large: %v", err)
	}
	d.Close(0)
	if _, err := d.Out(proto.Pair, 0, 0); err == nil {
		t.Error("Out after Close has no error")
	}
}

func TestSlicesWaitForTheConnection(t *testing.T) {
	a, b := newNode(0, 2), newNode(1, 2)
	defer a.Close(0)
	defer b.Close(0)
	out, in := outOf(t, a, proto.Pair, 0, 1), inOf(t, b, proto.Pair, 0, 0)
	put(t, out, []byte("early"))
	if err := a.Control(1, []byte("first")); err != nil {
		t.Fatal(err)
	}
	x, y := pair(t)
	if err := errors.Join(a.Add(1, x), b.Add(0, y)); err != nil {
		t.Fatal(err)
	}
	b.until(t, "slice", func() bool { s, _ := get(t, in); return string(s) == "early" })
	if m := b.heard(0); len(m) != 1 || m[0] != "first" {
		t.Errorf("messages %q came before the slice", m)
	}
}

// TestManySmallSlicesBothWays runs every pair of three ranks in both directions over several channels at once, with control
// messages between, and each rank's ports driven by one thread.
func TestManySmallSlicesBothWays(t *testing.T) {
	const rounds = 1500
	eachWay(t, 3, func(t *testing.T, nodes []*node) {
		var wait sync.WaitGroup
		for _, d := range nodes {
			wait.Go(func() { exchange(t, d, rounds) })
		}
		wait.Wait()
		for _, d := range nodes {
			for _, p := range nodes {
				if m := d.heard(p.me); p != d && len(m) != rounds/100 {
					t.Errorf("rank %d heard %d messages of %d", d.me, len(m), p.me)
				}
			}
		}
	})
}

// stream is one flow each way between two ranks, and how far it is.
type stream struct {
	out       proto.Out
	in        proto.In
	peer      int
	sent, got int
	me, him   int // the writers, for content
}

func exchange(t *testing.T, d *node, rounds int) {
	const channels = 3
	var streams []*stream
	for p := range d.n {
		for c := 0; c < channels && p != d.me; c++ {
			streams = append(streams, &stream{out: outOf(t, d, proto.Pair, c, p), in: inOf(t, d, proto.Pair, c, p), peer: p,
				me: d.me*channels + c, him: p*channels + c})
		}
	}
	d.until(t, "end of the exchange", func() bool {
		for moved := true; moved; {
			moved = false
			for _, s := range streams {
				moved = s.write(t, d, rounds) || moved
				moved = s.read(t, rounds) || moved
			}
		}
		for _, s := range streams {
			if s.sent < rounds || s.got < rounds {
				return false
			}
		}
		return true
	})
	d.until(t, "the last messages", func() bool {
		for p := range d.n {
			if p != d.me && len(d.heard(p)) < rounds/100 {
				return false
			}
		}
		return true
	})
}

// write commits the next slice, and sends a message once in a hundred on the first channel.
func (s *stream) write(t *testing.T, d *node, rounds int) bool {
	if s.sent == rounds || !put(t, s.out, content(s.me, s.sent, odd(s.me, s.sent))) {
		return false
	}
	s.sent++
	if s.out.(*outPort).channel == 0 && s.sent%100 == 0 {
		if err := d.Control(s.peer, []byte{byte(s.sent)}); err != nil {
			t.Error(err)
		}
	}
	return true
}

func (s *stream) read(t *testing.T, rounds int) bool {
	if s.got == rounds {
		return false
	}
	b, ok := get(t, s.in)
	if !ok {
		return false
	}
	if !bytes.Equal(b, content(s.him, s.got, odd(s.him, s.got))) {
		t.Errorf("slice %d of rank %d differs", s.got, s.peer)
	}
	s.got++
	return true
}
