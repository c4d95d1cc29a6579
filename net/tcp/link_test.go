package tcp

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/proto"
)

// again makes one more communicator of the same processes.
func again(t *testing.T, nodes []*node, id uint64) []*node {
	more := make([]*node, len(nodes))
	for r, d := range nodes {
		more[r] = joined(d.net, d.links, id, r)
		more[r].polls = d.polls
		t.Cleanup(func() { more[r].Fabric.Close(0) })
	}
	return more
}

// Communicators of the same processes exchange beside each other by the same rails, each what is its own.
func TestCommunicatorsShareLinks(t *testing.T) {
	const rounds = 200
	eachWay(t, 3, func(t *testing.T, nodes []*node) {
		all := append(again(t, nodes, 2), nodes...)
		all = append(all, again(t, nodes, 3)...)
		before := descriptors()
		var wait sync.WaitGroup
		for _, d := range all {
			wait.Go(func() { exchange(t, d, rounds) })
		}
		wait.Wait()
		if n := descriptors(); n > before {
			t.Errorf("%d descriptors, %d with the first communicator alone", n, before)
		}
	})
}

// A communicator ends in the middle of what it sends and is sent, and the one beside it goes on.
func TestOneCommunicatorEnds(t *testing.T) {
	eachWay(t, 2, func(t *testing.T, nodes []*node) {
		more := again(t, nodes, 2)
		const rounds = 400
		var wait sync.WaitGroup
		for _, d := range more {
			wait.Go(func() { exchange(t, d, rounds) })
		}
		for c := range 3 {
			out := outOf(t, nodes[0], proto.Pair, c, 1)
			back := outOf(t, nodes[1], proto.Pair, c, 0)
			for i := range slots {
				put(t, out, content(0, i, 30_000))
				put(t, back, content(1, i, 30_000))
			}
		}
		nodes[0].Fabric.Close(0)                          // at once, perhaps without a goodbye
		_ = nodes[1].Control(0, []byte("are you there?")) // in vain where there was one
		nodes[1].until(t, "end of the other rank", func() bool { return nodes[1].goneErr(0) != nil })
		wait.Wait()
		for r, d := range more {
			if err := d.goneErr(1 - r); err != nil {
				t.Error(err)
			}
		}
	})
}

// A rank leaves while its socket is full of what another communicator sends: it does not wait for that, and its peer hears of it by
// the answer to what it sends.
func TestLeavingBesideAFullSocket(t *testing.T) {
	nodes := mesh(t, 2, loopback)
	more := again(t, nodes, 2)
	more[1].Take() // its process does not read
	const channels = 16
	for c := range channels {
		for out := outOf(t, more[0], proto.Pair, c, 1); put(t, out, make([]byte, MaxSlice)); {
		}
	}
	nodes[0].Fabric.Close(10 * time.Millisecond)
	more[1].Give()
	if err := nodes[1].Control(0, []byte("are you there?")); err != nil && !errors.Is(err, errForgotten) { // it may have heard already
		t.Fatal(err)
	}
	nodes[1].until(t, "end of the other rank", func() bool { return nodes[1].goneErr(0) != nil })
	if err := nodes[1].goneErr(0); !errors.Is(err, errForgotten) {
		t.Errorf("the error is %v, wanted %v", err, errForgotten)
	}
	for c := range channels {
		in := inOf(t, more[1], proto.Pair, c, 0)
		for range slots {
			more[1].until(t, "slice of the other communicator", func() bool { _, ok := get(t, in); return ok })
		}
	}
}

// A link lets go of its rails and asks for a new one when something is to be sent; nothing is lost, whichever end sends first.
func TestLinkAtRest(t *testing.T) {
	for _, first := range []int{0, 1} {
		nodes := mesh(t, 2, loopback)
		asks := make(chan struct{}, 100)
		for r, d := range nodes {
			d.links[1-r].onNeed = func() { asks <- struct{}{} }
		}
		out, in := outOf(t, nodes[first], proto.Pair, 0, 1-first), inOf(t, nodes[1-first], proto.Pair, 0, first)
		for k := range 5 {
			nodes[k%2].links[1-k%2].Part()
			for r, d := range nodes {
				testkit.Eventually(t, hang, "end of the rail", func() bool { return !d.links[1-r].Live(0) })
			}
			want := content(first, k, 3000)
			put(t, out, want)
			select {
			case <-asks:
			case <-time.After(hang):
				t.Fatal("nobody asked for a rail")
			}
			lay(t, nodes, 0, 1, 0, loopback)
			nodes[1-first].until(t, "slice", func() bool {
				b, ok := get(t, in)
				if ok && !bytes.Equal(b, want) {
					t.Fatalf("slice %d differs", k)
				}
				return ok
			})
		}
		if err := errors.Join(nodes[0].goneErr(1), nodes[1].goneErr(0)); err != nil {
			t.Error(err)
		}
	}
}

// A socket still holds part of a slice when the communicator that sent it ends. Nobody of that one is woken when there is room: what the
// waking touches may be gone.
func TestRoomWakesNobodyWhoHasEnded(t *testing.T) {
	nodes := mesh(t, 2, loopback)
	more := again(t, nodes, 2)
	more[1].Take() // its process does not read
	for c := range 16 {
		for out := outOf(t, more[0], proto.Pair, c, 1); put(t, out, make([]byte, MaxSlice)); {
		}
	}
	more[0].Fabric.Close(0)
	select {
	case <-more[0].bell:
	default:
	}
	more[1].Give()
	more[1].until(t, "end of the other rank", func() bool { return more[1].goneErr(0) != nil })
	more[0].net.exclusively(func() {}) // who reads there has rung for all
	select {
	case <-more[0].bell:
		t.Error("a communicator that has ended was woken")
	default:
	}
}

// A process ends whose ranks have all said goodbye: that its sockets say none is no failure of a rail.
func TestEndOfAProcessIsNoFailure(t *testing.T) {
	nodes := railed(t, 2, 2, loopback)
	socket := nodes[0].rail(1, 1).fd
	nodes[0].Fabric.Close(hang)
	nodes[1].until(t, "goodbye", func() bool { return nodes[1].goneErr(0) != nil })
	_ = unix.Shutdown(socket, unix.SHUT_RDWR)
	testkit.Eventually(t, hang, "end of the rail", func() bool { return !nodes[1].links[0].Live(1) })
	nodes[1].net.exclusively(func() {}) // who reads there has told of it
	if n := nodes[1].cuts.Load(); n != 0 {
		t.Errorf("%d rails failed", n)
	}
}

// The end of one rail may be read before the goodbyes, which came earlier by another.
func TestEndIsReadBeforeTheGoodbye(t *testing.T) {
	nodes := railed(t, 2, 2, loopback)
	nodes[1].Take() // its process does not read
	nodes[0].Fabric.Close(hang)
	l := nodes[0].links[1]
	l.tx.wait()
	other := 1 - int(l.lead)
	for !l.tx.pass() {
		l.sendSome()
	}
	_ = unix.Shutdown(nodes[0].rail(1, other).fd, unix.SHUT_RDWR)
	end := nodes[1].rail(0, other)
	nodes[1].net.exclusively(func() {
		for !end.recv.done {
			nodes[1].net.read(end)
		}
	})
	if n := nodes[1].cuts.Load(); n != 0 {
		t.Errorf("%d rails failed", n)
	}
}

// A writer has as many slices on their way as slots are used, and goes on when half of them are read.
func TestFewerSlots(t *testing.T) {
	for asked, used := range map[int]int{1: LeastSlots, LeastSlots: LeastSlots, 20: 20, slots: slots, 1000: slots} {
		nodes := railed(t, 2, 1, loopback)
		for _, d := range nodes {
			d.Use(asked)
		}
		out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
		written, read := 0, 0
		for range 10 {
			for put(t, out, content(0, written, 100)) {
				written++
			}
			if written-read != used {
				t.Fatalf("%d slots asked for: %d slices are on their way", asked, written-read)
			}
			for range used / 2 {
				nodes[1].until(t, "slice", func() bool {
					b, ok := get(t, in)
					if ok && !bytes.Equal(b, content(0, read, 100)) {
						t.Fatalf("slice %d differs", read)
					}
					return ok
				})
				read++
			}
			flow := nodes[0].peers[1].out.find(proto.Pair, 0)
			nodes[0].until(t, "room", func() bool { return flow.freed.Load() == uint64(read) })
		}
	}
}
