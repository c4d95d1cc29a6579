package core

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/porttest"
	"hccl.dev/hccl/proto/wire"
)

const eagerBytes = 8 << 10 // of the messages in these tests

// office is the messages of n ranks over ports in memory, driven by one goroutine.
func office(n, slots int) (*porttest.Net, []*messages) { return officeOf(n, slots, eagerBytes) }

func officeOf(n, slots int, eager uint64) (*porttest.Net, []*messages) {
	net, all := porttest.NewNet(n, slots), make([]*messages, n)
	for r := range all {
		all[r] = newMessages(r, n, func(int) room { return room{eager, wire.FrameSize + eager} }, net.Ports(r), host.Queue{})
	}
	return net, all
}

// drive advances all until nothing moves any more.
func drive(t testing.TB, all []*messages) {
	t.Helper()
	for moved := true; moved; {
		moved = false
		for r, ms := range all {
			m, err := ms.advance()
			if err != nil {
				t.Fatalf("rank %d: %v", r, err)
			}
			moved = moved || m
		}
	}
}

func begin(t testing.TB, ms *messages, fn coll.Func, b []byte, peer int, tag int32) *message {
	t.Helper()
	c := letterCall(fn, b, peer)
	c.Tag = tag
	m, err := ms.start(&c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Random messages between all pairs, each rank with itself too, with few tags, in any order of sends and receives and by ports with
// as little as one slot: between two ranks messages of one tag arrive in order, whatever lies between them.
func TestRandomMessages(t *testing.T) {
	type lane struct {
		from, to int
		tag      int32
	}
	seeds := uint64(12)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 7))
		n := 1 + rng.IntN(3)
		net, all := office(n, 1<<rng.IntN(4))
		var sends, recvs []lane
		sizes := map[lane][]int{}
		for range 60 {
			l := lane{rng.IntN(n), rng.IntN(n), rng.Int32N(3)}
			sends, recvs = append(sends, l), append(recvs, l)
			sizes[l] = append(sizes[l], rng.IntN([]int{2, 9000, 400000}[rng.IntN(3)]))
		}
		rng.Shuffle(len(recvs), func(i, j int) { recvs[i], recvs[j] = recvs[j], recvs[i] })
		sent, got := map[lane][][]byte{}, map[lane][][]byte{}
		for len(sends)+len(recvs) > 0 {
			send := len(recvs) == 0 || len(sends) > 0 && rng.IntN(2) == 0
			if send {
				l := sends[0]
				b := letter(rng.IntN(100), uint64(sizes[l][len(sent[l])]))
				begin(t, all[l.from], coll.Send, b, l.to, l.tag)
				sends, sent[l] = sends[1:], append(sent[l], b)
			} else {
				l := recvs[0]
				b := make([]byte, sizes[l][len(got[l])])
				begin(t, all[l.to], coll.Recv, b, l.from, l.tag)
				recvs, got[l] = recvs[1:], append(got[l], b)
			}
			if rng.IntN(3) == 0 {
				drive(t, all)
			}
		}
		drive(t, all)
		for r, ms := range all {
			if ms.live != 0 || ms.blocker() >= 0 {
				t.Fatalf("seed %d: rank %d of %d has %d messages left and waits for %d", seed, r, n, ms.live, ms.blocker())
			}
		}
		for l := range sent {
			for k := range sent[l] {
				if !bytes.Equal(sent[l][k], got[l][k]) {
					t.Fatalf("seed %d: message %d of %+v, %d bytes, is another", seed, k, l, len(got[l][k]))
				}
			}
		}
		if !net.Empty() {
			t.Errorf("seed %d: slices are left", seed)
		}
	}
}

// Small sends end without the receiver; a large one is announced and does not stand in the way of small ones behind it.
func TestSmallSendsPassALargeOne(t *testing.T) {
	for _, limit := range []uint64{0, 100, eagerBytes, dataBytes} {
		_, all := officeOf(2, 4, limit)
		passes(t, all, letter(1, limit), letter(2, limit+1))
	}
}

func passes(t *testing.T, all []*messages, small, large []byte) {
	s := begin(t, all[0], coll.Send, large, 1, 0)
	f := begin(t, all[0], coll.Send, small, 1, 1)
	if _, err := all[0].advance(); err != nil || f.state != finished || s.state != announced {
		t.Fatalf("without a receiver: large %v, small %v (%v)", s.state, f.state, err)
	}
	in := make([]byte, len(small))
	begin(t, all[1], coll.Recv, in, 0, 1)
	drive(t, all)
	if !bytes.Equal(in, small) || s.state != announced {
		t.Errorf("the small message did not pass the large one (%v)", s.state)
	}
	in = make([]byte, len(large))
	begin(t, all[1], coll.Recv, in, 0, 0)
	drive(t, all)
	if !bytes.Equal(in, large) || s.state != finished {
		t.Errorf("the large message did not come (%v)", s.state)
	}
}

// A message and a receive that differ are a clash, whichever comes first, small or large, between two ranks and within one.
func TestClash(t *testing.T) {
	for _, size := range []uint64{10, 100000} {
		for _, n := range []int{1, 2} {
			for _, early := range []bool{false, true} {
				_, all := office(n, 4)
				out, in := letter(1, size), make([]byte, size+1)
				recv := func() error {
					c := letterCall(coll.Recv, in, 0)
					_, err := all[n-1].start(&c)
					return err
				}
				var err error
				if !early {
					err = recv()
				}
				begin(t, all[0], coll.Send, out, n-1, 0)
				for range 4 {
					for _, ms := range all {
						_, e := ms.advance()
						err = errors.Join(err, e)
					}
				}
				if early {
					err = errors.Join(err, recv())
					_, e := all[n-1].advance()
					err = errors.Join(err, e)
				}
				var c *clash
				if !errors.As(err, &c) || c.from != 0 || c.to != n-1 || c.sent.Count != size || c.wanted.Count != size+1 {
					t.Errorf("%d bytes, %d ranks, early %v: %v", size, n, early, err)
				}
			}
		}
	}
}

// Whatever frames a peer sends, they are taken or refused: nothing is written outside a receive, and nothing panics.
func FuzzFrames(f *testing.F) {
	f.Add(uint8(1), uint8(wire.Eager), uint8(coll.Uint8), int32(0), uint64(0), uint64(100), uint64(100), uint64(0), uint16(164))
	f.Add(uint8(1), uint8(wire.Announce), uint8(coll.Uint8), int32(0), uint64(0), uint64(100), uint64(0), uint64(0), uint16(64))
	f.Add(uint8(1), uint8(wire.Data), uint8(coll.Uint8), int32(0), uint64(0), uint64(100), uint64(50), uint64(60), uint16(114))
	f.Add(uint8(1), uint8(wire.Clear), uint8(coll.Uint8), int32(0), uint64(3), uint64(0), uint64(0), uint64(0), uint16(64))
	f.Add(uint8(1), uint8(wire.Eager), uint8(coll.Uint8), int32(0), uint64(0), uint64(100), uint64(0), uint64(0), uint16(64))
	f.Fuzz(func(t *testing.T, version, kind, typ uint8, tag int32, id, count, size, offset uint64, length uint16) {
		net, all := office(2, 8)
		peer, err := net.Ports(0).Out(proto.Msg, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		peer.Begin(messageTag, 1)
		memory := bytes.Repeat([]byte{0xa5}, 300)
		c := letterCall(coll.Recv, memory[100:200], 0)
		if _, err := all[1].start(&c); err != nil {
			t.Fatal(err)
		}
		put := func(fr wire.Frame, n uint64) {
			p, err := peer.Reserve(max(n, wire.FrameSize), 0)
			if err != nil || p == 0 {
				t.Fatal("no room", err)
			}
			*wire.FrameAt(p) = fr
			peer.Commit(n)
		}
		fr := wire.Frame{Version: version, Kind: wire.FrameKind(kind), Type: typ, Tag: tag, ID: id, Count: count, Bytes: size, Offset: offset}
		put(wire.Frame{Version: wire.Version, Kind: wire.Announce, Count: 100, Type: uint8(coll.Uint8), Tag: tag & 1, ID: 7}, wire.FrameSize)
		put(fr, uint64(length))
		put(fr, uint64(length))
		for range 4 {
			if _, err := all[1].advance(); err != nil {
				break
			}
		}
		for i, b := range memory {
			if (i < 100 || i >= 200) && b != 0xa5 {
				t.Fatalf("byte %d outside the receive was written", i)
			}
		}
		runtime.KeepAlive(memory)
	})
}
