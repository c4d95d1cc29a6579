package tcp

import (
	"testing"

	"hccl.dev/hccl/proto"
)

// A fabric is left alone for as long as its thread comes back between two ticks of the watcher, and read by the background after one in
// which it did not. The test ticks itself.
func TestRestIsShort(t *testing.T) {
	nodes := mesh(t, 2, loopback)
	background.ticking.Store(true) // so that nobody sets the timer
	defer background.ticking.Store(false)
	d := nodes[0]
	d.Take()
	for d.Poll(); d.isArmed(); d.Poll() { // a background that still reads what came with the connection
	}
	for range 3 {
		d.Rest()
		if d.net.retire() || d.isArmed() {
			t.Fatal("the background took over from a thread that was back in time")
		}
		d.Take()
		d.Poll()
	}
	d.Rest()
	d.net.retire()
	d.Take()
	if !d.net.retire() || d.isArmed() {
		t.Fatal("the background took over from a thread that is back")
	}
	d.Rest()
	if d.net.retire(); !d.net.retire() || !d.isArmed() {
		t.Error("the background did not take over from a thread that stays away")
	}
}

// isArmed reports whether an event wakes the background.
func (d *node) isArmed() bool {
	for !d.net.rx.take() {
		yield()
	}
	on := d.net.armed
	for !d.net.rx.pass() {
		d.net.step()
		d.net.arm()
	}
	return on
}

// What comes while nobody is back is read all the same: the watcher ticks.
func TestRestEnds(t *testing.T) {
	nodes := mesh(t, 2, loopback)
	for round := range 3 {
		nodes[1].Take()
		nodes[1].Poll()
		nodes[1].Rest()
		if err := nodes[0].Control(1, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		nodes[1].until(t, "message", func() bool { return len(nodes[1].heard(0)) > round })
	}
}

// A thread that leaves more than the sockets take has the background send it at once, not when a peer has waited for a while.
func TestRestLeavesNothingUnsent(t *testing.T) {
	nodes := mesh(t, 2, loopback)
	background.ticking.Store(true)
	defer background.ticking.Store(false)
	out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
	nodes[0].Take()
	nodes[1].Take() // and does not read
	sent := 0
	for put(t, out, content(0, sent, MaxSlice)) {
		sent++
	}
	nodes[0].Poll()
	if out.(*outPort).to[0].flow.idle() {
		t.Fatal("the sockets took everything: nothing is tested")
	}
	nodes[0].Rest()
	nodes[1].polls = true
	for range sent {
		nodes[1].until(t, "slice", func() bool { _, ok := get(t, in); return ok })
	}
}

func TestRestAllocatesNothing(t *testing.T) {
	d := mesh(t, 2, loopback)[0]
	if n := testing.AllocsPerRun(100, func() {
		d.Take()
		d.Poll()
		d.Rest()
		background.ticking.Store(false) // as after each tick
	}); n != 0 {
		t.Errorf("%v allocations for a rest, want 0", n)
	}
}
