package boot

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// roundsRank comes to the roll call as Meet does, then does something else than the exchange.
func roundsRank(t *testing.T, id []byte, rank, n int, then func(m *meeting, partners []partner)) {
	parsed, err := parseID(id)
	if err != nil {
		t.Error(err)
		return
	}
	m, err := newMeeting([]*uniqueID{parsed}, parsed, circleOf(rank, n, 1), rank, within(20))
	if err != nil {
		t.Error(err)
		return
	}
	defer m.close()
	partners, err := m.rollCall()
	if err != nil {
		t.Error(err)
		return
	}
	then(m, partners)
}

// hearsAllAndLeaves has what all neighbours can send without this rank's help when it goes, and none of them has more to say to it.
func hearsAllAndLeaves(m *meeting, ps []partner) {
	x, err := m.begin(ps)
	if err != nil {
		return
	}
	defer x.close()
	x.failed = true // it does not say that it goes
	for missing := true; missing && m.lim.check() == nil; pollFor(nil, time.Millisecond) {
		x.arrivals()
		missing = false
		for k, l := range x.in {
			_ = l.read(x.atMost(k))
			missing = missing || l.blocks == nil && 2<<k <= m.n
		}
	}
}

// One rank comes to the roll call and fails in the rounds, in several ways: all others hear of it, and most by its name.
func TestRankFailsInRounds(t *testing.T) {
	dialTo := func(m *meeting, p partner) int {
		c, err := Dial(p.addrs, p.key, m.id.secret[:], m.rank, purposeMeet, m.lim)
		if err != nil {
			t.Error(err)
		}
		return c.FD
	}
	ways := map[string]func(*meeting, []partner){
		"leaves": func(*meeting, []partner) {},
		"connects and leaves": func(m *meeting, ps []partner) {
			for _, p := range ps {
				Close(dialTo(m, p))
			}
		},
		"sends garbage": func(m *meeting, ps []partner) {
			s := stream{fd: dialTo(m, ps[1])}
			s.send([]byte("neither blocks nor a reason for failure"))
			s.close()
		},
		"sends blocks of another size": func(m *meeting, ps []partner) {
			s := stream{fd: dialTo(m, ps[0])}
			s.send(framed(frameBlocks, 1, []byte{255, 255, 0, 0}))
			s.close()
		},
		"hears all and leaves": hearsAllAndLeaves,
		"is aborted": func(m *meeting, ps []partner) {
			m.lim.Abort = func() error { return errors.New("stop") }
			x, err := m.begin(ps)
			if err != nil {
				t.Error(err)
				return
			}
			defer x.close()
			x.gather(nil)
		},
	}
	m := newMaker(t)
	nearAndApart(t, func(t *testing.T) {
		for name, way := range ways {
			sizes := []int{3, 5, 16}
			ids := [][]byte{m.ID(), m.ID(), m.ID()}
			t.Run(name, func(t *testing.T) {
				t.Parallel() // they wait most of the time
				for k, n := range sizes {
					go roundsRank(t, ids[k], 2, n, way)
					wantNamed(t, n, meetAll(ids[k], n, append([]int{0, 1}, upTo(n)[3:]...), same(within(20))), name == "is aborted")
				}
			})
		}
	})
}

// wantNamed fails unless all name rank 2 as the one that failed. Where it has said something before, ranks that need no more of it may
// have met.
func wantNamed(t *testing.T, n int, got map[int]outcome, spoke bool) {
	t.Helper()
	met := 0
	for rank, o := range got {
		var failed *RankError
		switch {
		case o.err == nil && spoke:
			met++
		case !errors.As(o.err, &failed) || failed.Rank != 2:
			t.Errorf("rank %d of %d: %v", rank, n, o.err)
		}
	}
	if met == len(got) {
		t.Errorf("all of %d ranks have met", n)
	}
}

// A rank that never sends is named when the limit passes.
func TestSilentRank(t *testing.T) {
	m := newMaker(t)
	id := m.ID()
	end := make(chan struct{})
	go roundsRank(t, id, 1, 3, func(*meeting, []partner) { <-end })
	for rank, o := range meetAll(id, 3, []int{0, 2}, same(within(1))) {
		var silent *SilentError
		var told *RankError
		if !(errors.As(o.err, &silent) && silent.Rank == 1) && !(errors.As(o.err, &told) && told.Rank == 1) {
			t.Errorf("rank %d: %v", rank, o.err)
		}
	}
	close(end)
}

func TestLargeBlobs(t *testing.T) {
	m := newMaker(t)
	id := m.ID()
	const n = 9
	errs := make(chan error, n)
	for r := range n {
		go func() {
			mine := make([]byte, MaxBlob)
			mine[0], mine[MaxBlob-1] = byte(r), byte(r)
			all, err := Meet(id, r, n, mine, within(20))
			for k, b := range all {
				if len(b) != MaxBlob || b[0] != byte(k) || b[MaxBlob-1] != byte(k) {
					err = errors.New("a blob came changed")
				}
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkMeet(b *testing.B) {
	m := newMaker(&testing.T{})
	defer m.Kill()
	for _, n := range []int{64, 256} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				id := m.ID()
				for _, o := range meetAll(id, n, upTo(n), same(Limit{Deadline: time.Now().Add(time.Minute)})) {
					if o.err != nil {
						b.Fatal(o.err)
					}
				}
			}
		})
	}
}

// A connection is read when something has come, and not for the time that has passed; one that is still being made has its turn.
func TestLook(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	there, made := &link{s: &stream{fd: fds[0]}}, &link{dial: &dialing{}}
	x := &rounds{all: []*link{there, made}, bell: -1}
	if x.wait(0); there.ready || !made.ready {
		t.Errorf("nothing has come: %v, %v", there.ready, made.ready)
	}
	if _, err := unix.Write(fds[1], []byte{1}); err != nil {
		t.Fatal(err)
	}
	if x.wait(time.Second); !there.ready {
		t.Error("what has come is not looked at")
	}
}

// The blocks of a round are put together once, and handed to a rank of this process as they are.
func TestBlocksAreNotCopied(t *testing.T) {
	x := &rounds{meeting: &meeting{circle: circleOf(0, 64, 1)}}
	for range x.size() {
		x.held = append(x.held, make([]byte, 1000))
	}
	if n := testing.AllocsPerRun(10, func() { x.blocks(5) }); n != 1 {
		t.Errorf("%v allocations for a frame", n)
	}
	a, b := pair(-1)
	frame := x.blocks(5)
	if err := (&stream{fd: -1, near: a}).give(frame); err != nil || len(b.got) != len(frame) || &b.got[0] != &frame[0] {
		t.Errorf("the other end has %d bytes of its own, of %d; %v", len(b.got), len(frame), err)
	}
}
