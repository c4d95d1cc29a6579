package core

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hccl.dev/hccl/internal/coll"
)

// pinned keeps memory where it is for as long as the tests run: the library knows its address alone.
func pinned(b []byte) []byte {
	held.Store(new(byte), b)
	return b
}

// listen starts a receive of anything: from a peer or AnySource, of a tag or AnyTag, of up to len(b) bytes.
func listen(t testing.TB, ms *messages, b []byte, source int, tag int32) (*message, *Status) {
	t.Helper()
	c, s := letterCall(coll.Recv, b, source), &Status{Source: -9}
	c.Tag, c.UpTo, c.Status = tag, true, s
	m, err := ms.start(&c)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

// A receive from any source takes what came first, whoever sent it, and says what it was; messages of one sender and tag keep their order.
func TestAnySourceTakesTheFirst(t *testing.T) {
	for _, size := range []uint64{100, eagerBytes + 1} {
		_, all := office(3, 4)
		steps := []struct {
			from int
			tag  int32
		}{{2, 5}, {1, 5}, {2, 6}, {0, 5}, {1, 7}}
		listen(t, all[0], pinned(make([]byte, 1)), AnySource, 99) // so that it looks for what comes
		for k, s := range steps {
			begin(t, all[s.from], coll.Send, pinned(letter(k, size)), 0, s.tag)
			drive(t, all) // comes before the next is sent
		}
		in := pinned(make([]byte, size+10))
		check := func(source int, tag int32, want int) {
			t.Helper()
			m, s := listen(t, all[0], in, source, tag)
			drive(t, all)
			w := steps[want]
			if m.state != finished || s.Source != int32(w.from) || s.Tag != w.tag || s.Bytes != size ||
				!bytes.Equal(in[:size], letter(want, size)) {
				t.Fatalf("%d bytes, source %d tag %d: took %+v, wanted message %d", size, source, tag, s, want)
			}
		}
		check(AnySource, 6, 2)
		check(AnySource, 5, 0)
		check(1, AnyTag, 1)
		if size == 100 { // a larger one to oneself waits for its receive, and so comes when that does
			check(AnySource, 5, 3)
			check(AnySource, AnyTag, 4)
		} else {
			check(AnySource, AnyTag, 4)
			check(AnySource, AnyTag, 3)
		}
	}
}

// Of several receives that fit a message the one that was made first takes it, from one source or from any.
func TestFirstReceiveTakesTheMessage(t *testing.T) {
	for _, anyFirst := range []bool{false, true} {
		_, all := office(2, 4)
		sources := []int{0, AnySource}
		if anyFirst {
			sources = []int{AnySource, 0}
		}
		first, _ := listen(t, all[1], pinned(make([]byte, 9)), sources[0], 3)
		second, _ := listen(t, all[1], pinned(make([]byte, 9)), sources[1], 3)
		begin(t, all[0], coll.Send, pinned(make([]byte, 9)), 1, 3)
		drive(t, all)
		if first.state != finished || second.state == finished {
			t.Errorf("any first %v: states %v, %v", anyFirst, first.state, second.state)
		}
		begin(t, all[0], coll.Send, pinned(make([]byte, 4)), 1, 3)
		drive(t, all)
		if second.state != finished {
			t.Errorf("any first %v: the second receive did not end", anyFirst)
		}
	}
}

// Random messages to one rank that takes them from any source: each comes once, whole, and those of one sender and tag in order.
func TestRandomAnySource(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 2 + rng.IntN(3)
		net, all := office(n, 1<<rng.IntN(3))
		sent, got := map[[2]int32][]string{}, map[[2]int32][]string{}
		type pending struct {
			b []byte
			s *Status
		}
		var recvs []pending
		const count = 40
		for sends := 0; sends < count || len(recvs) < count; {
			if len(recvs) == count || sends < count && rng.IntN(2) == 0 {
				from, tag := rng.IntN(n), rng.Int32N(3)
				b := pinned(letter(rng.IntN(250), rng.Uint64N([]uint64{20, 2 * eagerBytes, 2 * dataBytes}[rng.IntN(3)])))
				begin(t, all[from], coll.Send, b, 0, tag)
				key := [2]int32{int32(from), tag}
				sent[key] = append(sent[key], string(b))
				sends++
			} else {
				p := pending{b: pinned(make([]byte, 2*dataBytes))}
				_, p.s = listen(t, all[0], p.b, AnySource, AnyTag)
				recvs = append(recvs, p)
			}
			if rng.IntN(3) == 0 {
				drive(t, all)
			}
		}
		drive(t, all)
		for _, p := range recvs {
			key := [2]int32{p.s.Source, p.s.Tag}
			got[key] = append(got[key], string(p.b[:p.s.Bytes]))
		}
		if fmt.Sprint(sent) != fmt.Sprint(got) || all[0].live != 0 || !net.Empty() {
			t.Fatalf("seed %d: what was received differs from what was sent; %d live", seed, all[0].live)
		}
	}
}

// A message that is longer than its receive has room is a clash, a shorter one is not.
func TestUpTo(t *testing.T) {
	_, all := office(2, 4)
	m, s := listen(t, all[1], pinned(make([]byte, 10)), 0, 0)
	begin(t, all[0], coll.Send, nil, 1, 0)
	drive(t, all)
	if m.state != finished || s.Bytes != 0 || s.Source != 0 {
		t.Errorf("an empty message: %+v", s)
	}
	listen(t, all[1], pinned(make([]byte, 10)), AnySource, 0)
	begin(t, all[0], coll.Send, pinned(make([]byte, 11)), 1, 0)
	if _, err := all[0].advance(); err != nil {
		t.Fatal(err)
	}
	if _, err := all[1].advance(); err == nil || err.Error() != "a message and its receive differ" {
		t.Errorf("a message that is too long: %v", err)
	}
}

// A receive that runs out of time before a message has met it ends alone; the communicator goes on.
func TestReceiveRunsOutOfTime(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.must(w.each(func(r int) error {
			b := pinned(make([]byte, 100))
			if r == 0 {
				for _, source := range []int{AnySource, 1, 0} {
					c := letterCall(coll.Recv, b, source)
					c.UpTo, c.Limit, c.Tag = true, 60*time.Millisecond, 4
					wantError(t, do(w.comms[0], &c), Timeout, "rank 0 gave up", "recv of up to 100 elements", "tag 4")
				}
			}
			p := adding(2, 1000, 1).part(r)
			if err := do(w.comms[r], &p.call); err != nil {
				return err
			}
			c := letterCall(coll.Send, pinned(letter(1, 50)), 0)
			c.Tag = 4
			if r == 1 {
				return do(w.comms[1], &c)
			}
			c = letterCall(coll.Recv, b, AnySource)
			s := new(Status)
			c.UpTo, c.Status, c.Tag = true, s, AnyTag
			err := do(w.comms[0], &c)
			if *s != (Status{Source: 1, Tag: 4, Bytes: 50}) || !bytes.Equal(b[:50], letter(1, 50)) {
				t.Errorf("received %+v", s)
			}
			return err
		}))
		w.destroy()
	})
}

// A rank that dies or aborts ends a receive from any source; one that leaves in order does so only if it was the last.
func TestAnySourceAndThoseWhoGo(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.must(w.each(func(r int) error {
			switch r {
			case 1:
				return w.comms[1].Destroy()
			case 2:
				m := letterCall(coll.Send, pinned(letter(2, 20)), 0)
				if err := do(w.comms[2], &m); err != nil {
					return err
				}
				return w.comms[2].Destroy()
			}
			for range 2 {
				b := pinned(make([]byte, 20))
				m := letterCall(coll.Recv, b, AnySource)
				err := do(w.comms[0], &m)
				if bytes.Equal(b, letter(2, 20)) {
					continue
				}
				wantError(t, err, RemoteError, "has left the communicator", "recv of 20 elements of uint8, from any rank")
			}
			return nil
		}))
		w.abort()
	})
}
