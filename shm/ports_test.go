package shm

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/proto"
)

type ports = []*Ports

func portsOf(segs []*Segment) (p ports) {
	for _, s := range segs {
		p = append(p, s.Ports())
	}
	return p
}

func outOf(t testing.TB, p *Ports, kind proto.Kind, channel, peer int) proto.Out {
	t.Helper()
	o, err := p.Out(kind, channel, peer)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func inOf(t testing.TB, p *Ports, kind proto.Kind, channel, peer int) proto.In {
	t.Helper()
	i, err := p.In(kind, channel, peer)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// send commits a slice of n bytes with a mark at each end, if there is room.
func send(t testing.TB, o proto.Out, n, mark uint64) bool {
	t.Helper()
	p, err := o.Reserve(n, 0)
	if err != nil {
		t.Fatal(err)
	}
	if p == 0 {
		return false
	}
	word64(uintptr(p)).Store(mark)
	word64(uintptr(p) + uintptr(n) - 8).Store(mark)
	o.Commit(n)
	return true
}

func receive(t testing.TB, i proto.In, n, mark uint64) bool {
	t.Helper()
	p, got, err := i.Peek()
	if err != nil {
		t.Fatal(err)
	}
	if p == 0 {
		return false
	}
	if got != n || word64(uintptr(p)).Load() != mark || word64(uintptr(p)+uintptr(n)-8).Load() != mark {
		t.Fatalf("slice %d: %d bytes marked %d, want %d", mark, got, word64(uintptr(p)).Load(), n)
	}
	i.Release()
	return true
}

// Slices of changing sizes come in order through rings that wrap around, at any interleaving, on every kind of port.
func TestPortsOrder(t *testing.T) {
	segs := host(t, 3, 2)
	defer leave(segs)
	p := portsOf(segs)
	for _, kind := range []proto.Kind{proto.Pair, proto.All, proto.Msg} {
		o := outOf(t, p[0], kind, 1, 1)
		ins := []proto.In{inOf(t, p[1], kind, 1, 0)}
		if kind == proto.All {
			ins = append(ins, inOf(t, p[2], kind, 1, 0))
		}
		tag := proto.Tag{Seq: 7, Hash: 9}
		o.Begin(tag, 1)
		for _, i := range ins {
			i.Begin(tag)
		}
		rng := rand.New(rand.NewPCG(3, uint64(kind)))
		const total = 5000
		sizes := make([]uint64, total)
		for k := range sizes {
			sizes[k] = 8 + 8*rng.Uint64N(1<<rng.IntN(14))
		}
		sent, got := 0, make([]int, len(ins))
		for sent < total || got[0] < total || got[len(got)-1] < total {
			if sent < total && rng.IntN(2) == 0 && send(t, o, sizes[sent], uint64(sent)) {
				sent++
			}
			if k := rng.IntN(len(ins)); got[k] < sent && receive(t, ins[k], sizes[got[k]], uint64(got[k])) {
				got[k]++
			}
		}
		if x, _, err := ins[0].Peek(); x != 0 || err != nil {
			t.Errorf("kind %d: a slice too many, or %v", kind, err)
		}
	}
}

func TestPortsBounded(t *testing.T) {
	segs := host(t, 3, 1)
	defer leave(segs)
	p := portsOf(segs)
	o, in1, in2 := outOf(t, p[1], proto.All, 0, 0), inOf(t, p[0], proto.All, 0, 1), inOf(t, p[2], proto.All, 0, 1)
	var tag proto.Tag
	o.Begin(tag, 1)
	in1.Begin(tag)
	in2.Begin(tag)
	if o.Blocker() != -1 {
		t.Error("a new port is blocked")
	}
	n := uint64(0)
	for send(t, o, 64<<10, n) {
		n++
	}
	if want := segs[1].arena.slotsFor(64 << 10); n != want {
		t.Errorf("%d slices in flight, want %d", n, want)
	}
	for k := range n {
		receive(t, in1, 64<<10, k)
	}
	if x, _ := o.Reserve(8, 0); x != 0 || o.Blocker() != 2 {
		t.Errorf("one of two readers has read: room at %x, blocker %d, want 2", x, o.Blocker())
	}
	receive(t, in2, 64<<10, 0)
	if !send(t, o, 8, 1) {
		t.Error("no room after all have read a slice")
	}
}

// An empty slice is a slice, and one of another operation is told from one that is late.
func TestPortsTags(t *testing.T) {
	segs := host(t, 2, 1)
	defer leave(segs)
	p := portsOf(segs)
	o, in := outOf(t, p[0], proto.Pair, 0, 1), inOf(t, p[1], proto.Pair, 0, 0)
	good := proto.Tag{Lane: 1, Seq: 2, Hash: 3}
	o.Begin(good, 1)
	if x, err := o.Reserve(0, 0); x == 0 || err != nil {
		t.Fatal(x, err)
	}
	o.Commit(0)
	for _, bad := range []proto.Tag{{Lane: 0, Seq: 2, Hash: 3}, {Lane: 1, Seq: 3, Hash: 3}, {Lane: 1, Seq: 2, Hash: 4}} {
		in.Begin(bad)
		if _, _, err := in.Peek(); !errors.Is(err, proto.ErrTag) {
			t.Errorf("tag %v for %v: %v", bad, good, err)
		}
	}
	in.Begin(good)
	if x, n, err := in.Peek(); x == 0 || n != 0 || err != nil {
		t.Errorf("empty slice: %x, %d bytes, %v", x, n, err)
	}
	in.Release()
	if x, _, _ := in.Peek(); x != 0 {
		t.Error("a slice after the last")
	}
}

// Whatever a peer writes into its lines, a reader answers with an error or a range inside the peer's arena.
func FuzzPeek(f *testing.F) {
	f.Add(uint64(1), uint64(0), uint64(8), uint64(1))
	f.Add(uint64(17), uint64(1)<<63, uint64(1)<<63, uint64(0))
	f.Add(uint64(1), ^uint64(0)-3, uint64(8), uint64(1))
	segs := host(f, 2, 1)
	in := inOf(f, segs[1].Ports(), proto.Pair, 0, 0).(*in)
	f.Fuzz(func(t *testing.T, stamp, off, n, next uint64) {
		in.next = next
		d := sliceAt(in.ring + uintptr(in.next&(ringLen-1))*lineSize)
		d.off, d.len, d.seq, d.hash, d.lane = off, n, 0, 0, 0
		d.stamp.Store(stamp)
		p, got, err := in.Peek()
		if p == 0 {
			return
		}
		base := device.Ptr(in.view.base)
		if err != nil || stamp != next+1 || p < base || uint64(p-base)+got > in.view.size || got > in.view.size {
			t.Errorf("slice at %x of %d bytes, %v", p, got, err)
		}
	})
}

// A reader that claims to have read what was never sent is found out.
func TestHostileAck(t *testing.T) {
	segs := host(t, 2, 1)
	defer leave(segs)
	o := outOf(t, segs[0].Ports(), proto.Pair, 0, 1).(*out)
	o.Begin(proto.Tag{}, 1)
	for send(t, o, 4<<10, 0) {
	}
	for _, ack := range []uint64{o.head + 1, ^uint64(0), 1 << 40} {
		word64(o.readers[0].ack).Store(ack)
		if x, err := o.Reserve(4<<10, 0); x != 0 || err != errAck {
			t.Errorf("ack %d of %d: %x, %v", ack, o.head, x, err)
		}
	}
	word64(o.readers[0].ack).Store(o.head)
}

// A port has fewer slots where the arena has no room for more, but not fewer than the operation needs: that is an error at once.
func TestSlotsThatAreNeeded(t *testing.T) {
	segs := host(t, 2, 1)
	defer leave(segs)
	small, err := newArena(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	segs[0].arena = small
	o := outOf(t, segs[0].Ports(), proto.Pair, 0, 1).(*out)
	const slice = 200 << 10 // two slots fit
	for _, c := range []struct{ need, bytes, slots int }{{1, slice, 2}, {2, slice, 2}, {3, slice, 0}, {3, slice / 2, 4}, {4, slice / 2, 4},
		{9, slice / 10, 16}} {
		o.Begin(proto.Tag{}, c.need)
		x, err := o.Reserve(uint64(c.bytes), 0)
		if c.slots == 0 && (x != 0 || err == nil || !strings.Contains(err.Error(), "HCCL_SHM_ARENA")) {
			t.Errorf("%d slots of %d bytes: room at %x, error %v", c.need, c.bytes, x, err)
		} else if c.slots != 0 && (err != nil || o.slots != uint64(c.slots)) {
			t.Errorf("%d slots of %d bytes: there are %d, error %v", c.need, c.bytes, o.slots, err)
		}
	}
}

// 64 communicators of 4 ranks, used in turn, share the staging of few; a busy one keeps its own.
func TestReclaim(t *testing.T) {
	l := open(t)
	var all [][]*Segment
	for range 64 {
		all = append(all, host(t, 4, 1))
	}
	busy := outOf(t, all[0][0].Ports(), proto.Pair, 0, 1)
	busy.Begin(proto.Tag{}, 1)
	send(t, busy, 64<<10, 42)
	for round := range 2 {
		for _, segs := range all[1:] {
			exchangeAll(t, segs, round)
		}
		if l.arena.inUse > softBytes+1<<20 {
			t.Errorf("%d KiB of staging after round %d", l.arena.inUse>>10, round)
		}
	}
	in := inOf(t, all[0][1].Ports(), proto.Pair, 0, 0)
	if !receive(t, in, 64<<10, 42) {
		t.Error("the busy port's slice is lost")
	}
	for _, segs := range all {
		leave(segs)
	}
	if l.arena.inUse != bellBytes {
		t.Errorf("%d bytes in use after all have left", l.arena.inUse)
	}
}

// exchangeAll sends a slice of 64 KiB over every pair of ranks. Ports are opened once.
func exchangeAll(t *testing.T, segs []*Segment, round int) {
	for w, s := range segs {
		for r := range segs {
			if r == w {
				continue
			}
			var o proto.Out
			if round == 0 {
				o = outOf(t, s.ports, proto.Pair, 0, r)
			} else {
				o = s.ports.outs[between(w, r)]
			}
			o.Begin(proto.Tag{}, 1)
			send(t, o, 64<<10, uint64(w*r))
			in := inOf(t, segs[r].ports, proto.Pair, 0, w)
			receive(t, in, 64<<10, uint64(w*r))
		}
		s.ports.Rest()
	}
}

// between is the position of r among the ranks other than w.
func between(w, r int) int {
	if r > w {
		return r - 1
	}
	return r
}

// Slices outlive their writer's use of the communicator until they are read, or their reader leaves.
func TestSlicesOutliveClose(t *testing.T) {
	l := open(t)
	segs := host(t, 3, 1)
	in := inOf(t, segs[1].Ports(), proto.Pair, 0, 0)
	for r := 1; r < 3; r++ {
		o := outOf(t, segs[0].Ports(), proto.Pair, 0, r)
		o.Begin(proto.Tag{}, 1)
		send(t, o, 128<<10, uint64(r))
	}
	segs[0].SetState(Left)
	segs[0].Close()
	if l.arena.burials() != 1 {
		t.Fatal("the segment was unmapped with slices unread")
	}
	if !receive(t, in, 128<<10, 1) {
		t.Fatal("the slice is lost")
	}
	leave(segs[1:]) // rank 2 leaves without reading
	l.arena.bury()
	if l.arena.burials() != 0 || l.arena.inUse != bellBytes {
		t.Errorf("%d segments and %d bytes are left", l.arena.burials(), l.arena.inUse)
	}
}

func TestPortsAllocateNothing(t *testing.T) {
	segs := host(t, 2, 1)
	defer leave(segs)
	p := portsOf(segs)
	o, in := outOf(t, p[0], proto.Pair, 0, 1), inOf(t, p[1], proto.Pair, 0, 0)
	got := testing.AllocsPerRun(1000, func() {
		o.Begin(proto.Tag{}, 1)
		in.Begin(proto.Tag{})
		send(t, o, 4<<10, 1)
		receive(t, in, 4<<10, 1)
		p[0].Rest()
	})
	if got != 0 {
		t.Errorf("%v allocations per slice, want 0", got)
	}
}

func BenchmarkSlice(b *testing.B) {
	segs := host(b, 2, 1)
	defer leave(segs)
	p := portsOf(segs)
	o, in := outOf(b, p[0], proto.Pair, 0, 1), inOf(b, p[1], proto.Pair, 0, 0)
	o.Begin(proto.Tag{}, 1)
	b.ReportAllocs()
	for b.Loop() {
		o.Reserve(4<<10, 0)
		o.Commit(4 << 10)
		in.Peek()
		in.Release()
	}
}
