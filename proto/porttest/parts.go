package porttest

import (
	"errors"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/proto"
)

// sizes passes slices of every length around boundaries, the empty one among them, and one shorter than what was reserved.
func (s *suite) sizes() {
	o, in := s.out(0, proto.Pair, 0, 1), s.in(1, proto.Pair, 0, 0)
	k := 0
	for _, n := range []uint64{0, 1, 8, 47, 48, 49, 63, 64, 65, 0, 4095, 4096, 4097, 65536, s.MaxSlice - 1, s.MaxSlice} {
		if n > s.MaxSlice {
			continue
		}
		s.write(o, 0, k, n)
		s.read(in, 0, k, n)
		k++
	}
	var p device.Ptr
	s.wait("room", func() bool {
		var err error
		if p, err = o.Reserve(100, 0); err != nil {
			s.Fatal(err)
		}
		return p != 0
	})
	for i, b := uint64(0), device.Bytes(p, 10); i < 10; i++ {
		b[i] = pattern(0, k, i)
	}
	o.Commit(10)
	s.read(in, 0, k, 10)
}

// order passes many slices both ways at once, with reader and writer ahead by turns, so that every slot is used again and again.
func (s *suite) order() {
	const total = 2000
	type line struct {
		o     proto.Out
		in    proto.In
		w, r  int
		sizes [total]uint64
	}
	var lines [4]line
	for i := range lines {
		l := &lines[i]
		from, to := i%2, 1-i%2
		l.o, l.in = s.out(from, proto.Pair, i/2, to), s.in(to, proto.Pair, i/2, from)
		for k := range l.sizes {
			l.sizes[k] = s.rng.Uint64N(min(s.MaxSlice, 300) + 1)
		}
	}
	s.wait("the end of all lines", func() bool {
		left := false
		for i := range lines {
			l := &lines[i]
			for range s.rng.IntN(6) {
				if l.w < total && s.tryWrite(l.o, i, l.w, l.sizes[l.w]) {
					l.w++
				}
			}
			for range s.rng.IntN(6) {
				if l.r < total && s.tryRead(l.in, i, l.r, l.sizes[l.r]) {
					l.r++
				}
			}
			left = left || l.r < total
		}
		return !left
	})
}

// bounded shows that a writer runs out of room, says for whom it waits, and goes on when that rank has read.
func (s *suite) bounded() {
	o, in := s.out(0, proto.Pair, 0, 1), s.in(1, proto.Pair, 0, 0)
	k, idle := 0, 0
	s.wait("the end of the room", func() bool {
		if !s.tryWrite(o, 0, k, s.MaxSlice) {
			idle++
		} else if k, idle = k+1, 0; k > 4096 {
			s.Fatalf("%d slices of %d bytes were taken unread", k, s.MaxSlice)
		}
		return idle > 1000
	})
	if b := o.Blocker(); b != 1 {
		s.Errorf("without room Blocker is %d, wanted rank 1", b)
	}
	for i := range k {
		s.read(in, 0, i, s.MaxSlice)
	}
	s.write(o, 0, k, s.MaxSlice)
	s.read(in, 0, k, s.MaxSlice)
	s.wait("Blocker to be nobody", func() bool { return o.Blocker() < 0 })
}

// room shows that a port holds as many long slices unread as plans need.
func (s *suite) room() {
	o, in := s.out(0, proto.Pair, 0, 1), s.in(1, proto.Pair, 0, 0)
	all, all1 := s.out(1, proto.All, 0, 0), s.in(0, proto.All, 0, 1)
	for k := range proto.MinSlots {
		s.write(o, 0, k, s.MaxSlice)
		s.write(all, 1, k, s.MaxSlice)
	}
	for k := range proto.MinSlots {
		s.read(in, 0, k, s.MaxSlice)
		s.read(all1, 1, k, s.MaxSlice)
	}
}

// stays shows that a slice lies still until it is released, whatever the writer does.
func (s *suite) stays() {
	o, in := s.out(0, proto.Pair, 0, 1), s.in(1, proto.Pair, 0, 0)
	n := min(s.MaxSlice, 1000)
	w := 0
	for k := range 50 {
		if w == k {
			s.write(o, 0, w, n)
			w++
		}
		var at device.Ptr
		s.wait("a slice", func() bool {
			p, got, err := in.Peek()
			if err != nil {
				s.Fatal(err)
			}
			if at = p; p != 0 {
				s.compare(p, got, 0, k, n)
			}
			return p != 0
		})
		for s.tryWrite(o, 0, w, n) {
			w++
			if w > 100000 {
				s.Fatal("the port has no bound")
			}
		}
		p, got, err := in.Peek()
		if p != at || err != nil {
			s.Fatalf("slice %d moved from %#x to %#x (%v) before it was released", k, at, p, err)
		}
		s.compare(p, got, 0, k, n)
		in.Release()
	}
}

// multicast shows that every other rank reads all that each rank writes to all.
func (s *suite) multicast() {
	n := len(s.Ports)
	const total = 300
	outs, ins := make([]proto.Out, n), make([][]proto.In, n)
	w, r := make([]int, n), make([][]int, n)
	for i := range n {
		outs[i], ins[i], r[i] = s.out(i, proto.All, 0, 0), make([]proto.In, n), make([]int, n)
		for p := range n {
			if p != i {
				ins[i][p] = s.in(i, proto.All, 0, p)
			}
		}
	}
	size := func(i, k int) uint64 { return uint64(i*37+k*11) % min(s.MaxSlice, 200) }
	s.wait("the end of all multicasts", func() bool {
		left := false
		for i := range n {
			if w[i] < total && s.tryWrite(outs[i], i, w[i], size(i, w[i])) {
				w[i]++
			}
			for p := range n {
				if p == i {
					continue
				}
				if s.rng.IntN(3) == 0 && r[i][p] < total && s.tryRead(ins[i][p], p, r[i][p], size(p, r[i][p])) {
					r[i][p]++
				}
				left = left || r[i][p] < total
			}
		}
		return !left
	})
}

// slowReader shows that the slowest reader bounds a multicast, and is named.
func (s *suite) slowReader() {
	o := s.out(0, proto.All, 0, 0)
	fast, slow := s.in(1, proto.All, 0, 0), s.in(2, proto.All, 0, 0)
	n := min(s.MaxSlice, 512)
	w, r, idle := 0, 0, 0
	s.wait("the end of the room", func() bool {
		idle++
		if s.tryWrite(o, 0, w, n) {
			w, idle = w+1, 0
		}
		if r < w && s.tryRead(fast, 0, r, n) {
			r, idle = r+1, 0
		}
		if w > 4096 {
			s.Fatalf("%d slices were taken that rank 2 has not read", w)
		}
		return idle > 1000 && r == w
	})
	if b := o.Blocker(); b != 2 {
		s.Errorf("Blocker is %d, wanted rank 2, which has read nothing", b)
	}
	for k := range w {
		s.read(slow, 0, k, n)
	}
	s.write(o, 0, w, n)
	s.read(slow, 0, w, n)
	s.read(fast, 0, w, n)
}

// tags shows that a slice of another operation is refused, whichever part of the tag differs.
func (s *suite) tags() {
	other := []proto.Tag{{Lane: 1, Seq: tag.Seq, Hash: tag.Hash}, {Seq: tag.Seq + 1, Hash: tag.Hash}, {Seq: tag.Seq, Hash: tag.Hash ^ 1},
		{Seq: tag.Seq, Hash: tag.Hash ^ 1<<63}}
	for c, wrong := range other {
		for _, kind := range []proto.Kind{proto.Pair, proto.All} {
			o, in := s.out(0, kind, c, 1), s.in(1, kind, c, 0)
			in.Begin(wrong)
			s.write(o, c, 0, 8)
			s.wait("an error", func() bool {
				p, _, err := in.Peek()
				if p != 0 || err != nil && !errors.Is(err, proto.ErrTag) {
					s.Fatalf("kind %d: a slice of %+v was read for %+v: %#x, %v", kind, tag, wrong, p, err)
				}
				return err != nil
			})
		}
	}
}

// operations shows that a writer may be an operation ahead of its reader.
func (s *suite) operations() {
	o, in := s.out(0, proto.Pair, 0, 1), s.in(1, proto.Pair, 0, 0)
	for seq := range 200 {
		t := proto.Tag{Seq: uint64(2*seq + 10), Hash: uint64(seq) * 0x9e3779b97f4a7c15}
		next := proto.Tag{Seq: t.Seq + 1, Hash: ^t.Hash}
		o.Begin(t, 1)
		s.write(o, 0, 0, 5)
		o.Begin(next, 1)
		s.write(o, 0, 1, 6)
		in.Begin(t)
		s.read(in, 0, 0, 5)
		in.Begin(next)
		s.read(in, 0, 1, 6)
	}
}

// independent shows that kinds, channels and peers do not mix.
func (s *suite) independent() {
	type line struct {
		o  proto.Out
		in proto.In
	}
	var lines []line
	for _, kind := range []proto.Kind{proto.Pair, proto.Msg} {
		for channel := range 2 {
			for from := range 3 {
				for to := range 3 {
					if from != to {
						lines = append(lines, line{s.out(from, kind, channel, to), s.in(to, kind, channel, from)})
					}
				}
			}
		}
	}
	for channel := range 2 {
		lines = append(lines, line{s.out(0, proto.All, channel, 0), s.in(1, proto.All, channel, 0)})
	}
	for k := range 3 {
		for i, l := range lines {
			s.write(l.o, i, k, uint64(i+k))
		}
	}
	for k := range 3 {
		for i := len(lines) - 1; i >= 0; i-- {
			s.read(lines[i].in, i, k, uint64(i+k))
		}
	}
}
