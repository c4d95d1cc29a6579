package boot

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParts(t *testing.T) {
	for n := 1; n <= 40; n++ {
		for ids := 1; ids <= n; ids++ {
			p := parts{n, ids}
			if p.first(ids) != n {
				t.Fatalf("%+v: the parts hold %d ranks", p, p.first(ids))
			}
			for r := range n {
				k := p.of(r)
				if k < 0 || k >= ids || r < p.first(k) || r >= p.first(k+1) {
					t.Fatalf("%+v: rank %d is of part %d, which begins with %d", p, r, k, p.first(k))
				}
				if size := p.first(k+1) - p.first(k); size != n/ids && size != n/ids+1 {
					t.Fatalf("%+v: part %d has %d ranks", p, k, size)
				}
			}
		}
	}
}

// idsOf are count ids, by turns from each maker.
func idsOf(count int, makers ...*maker) (ids []byte) {
	for k := range count {
		ids = append(ids, makers[k%len(makers)].ID()...)
	}
	return ids
}

func TestSeveralIDs(t *testing.T) {
	a, b := newMaker(t), newMaker(t)
	nearAndApart(t, func(t *testing.T) {
		for _, c := range []struct{ n, ids int }{{2, 2}, {3, 2}, {5, 2}, {5, 5}, {7, 3}, {12, 12}, {16, 4}, {17, 5}, {33, 8}} {
			ids := idsOf(c.ids, a, b)
			wantMet(t, c.n, meetAll(ids, c.n, upTo(c.n), same(within(30))))
			for r, o := range meetAll(ids, c.n, upTo(c.n), same(within(30))) {
				var used *UsedError
				if !errors.As(o.err, &used) {
					t.Errorf("the same ids again, rank %d of %d: %v", r, c.n, o.err)
				}
			}
		}
	})
}

// A maker with 16 descriptors can serve a part and the speakers, not all ranks.
func TestIDsShareTheLoad(t *testing.T) {
	var makers []*maker
	for range 4 {
		m := newMaker(t)
		makers = append(makers, m)
		m.ID() // opens what it needs for itself
		limit := unix.Rlimit{Cur: 22, Max: 22}
		if err := unix.Prlimit(m.Cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
			t.Skip(err)
		}
	}
	wantMet(t, 24, meetAll(idsOf(4, makers...), 24, upTo(24), same(within(20))))
	for r, o := range meetAll(idsOf(1, makers...), 24, upTo(24), same(within(20))) {
		if o.err == nil || !strings.Contains(o.err.Error(), "ulimit -n") {
			t.Errorf("rank %d with one id: %v", r, o.err)
		}
	}
}

// wantAll fails unless every rank failed as said, in time.
func wantAll(t *testing.T, what string, got map[int]outcome, most time.Duration, as func(error) bool) {
	t.Helper()
	for r, o := range got {
		if !as(o.err) || o.took > most {
			t.Errorf("%s: rank %d after %v: %v", what, r, o.took, o.err)
		}
	}
}

func lacks(missing ...int) func(error) bool {
	return func(err error) bool {
		var absent *AbsentError
		return errors.As(err, &absent) && slices.Equal(absent.Ranks, missing)
	}
}

// Whoever is missing is named on every rank, whatever part it is of.
func TestAbsentOfSeveralIDs(t *testing.T) {
	a, b := newMaker(t), newMaker(t)
	for _, missing := range [][]int{{1}, {3, 4}, {5}} { // of parts 0-2, 3-4, 5-6: a member, a whole part, a speaker
		n := 7
		here := slices.DeleteFunc(upTo(n), func(r int) bool { return slices.Contains(missing, r) })
		got := meetAll(idsOf(3, a, b), n, here, same(within(0.5)))
		wantAll(t, fmt.Sprint(missing, " missing"), got, 3*time.Second, lacks(missing...))
	}
}

// The maker of any id is dead: all ranks say so, and where it was.
func TestMakerOfSeveralGone(t *testing.T) {
	for k := range 2 {
		makers := []*maker{newMaker(t), newMaker(t), newMaker(t)}
		ids := idsOf(3, makers...)
		makers[k].Kill()
		id, err := parseID(ids[k*idSize : (k+1)*idSize])
		if err != nil {
			t.Fatal(err)
		}
		got := meetAll(ids, 7, upTo(7), same(within(0.5)))
		wantAll(t, fmt.Sprintf("maker %d gone", k), got, 3*time.Second, func(err error) bool {
			return err != nil && strings.Contains(err.Error(), id.addrs[0].String()) && strings.Contains(err.Error(), "not reachable")
		})
	}
}

// What fails in one part is known in all of them long before the limit.
func TestFailureOfOnePart(t *testing.T) {
	a, b := newMaker(t), newMaker(t)
	soon := 3 * time.Second
	cause := errors.New("stop")
	for _, gone := range []int{0, 3, 4, 6} {
		got := meetAll(idsOf(3, a, b), 7, upTo(7)[:6+gone/6], func(r int) Limit { // one rank is awaited, or all meet
			lim := within(20)
			if asked := 0; r == gone {
				lim.Abort = func() error {
					if asked++; asked > 5 {
						return cause
					}
					return nil
				}
			}
			return lim
		})
		if gone == 6 {
			continue // all have come: whether they met before the abort does not matter here
		}
		if got[gone].err != cause {
			t.Errorf("the aborted rank %d: %v", gone, got[gone].err)
		}
		delete(got, gone)
		wantAll(t, fmt.Sprintf("rank %d aborted", gone), got, soon, func(err error) bool {
			var other *RankError
			return errors.As(err, &other) && other.Rank == gone
		})
	}

	ids := idsOf(3, a, b)
	outcomes := make(chan outcome)
	start := time.Now()
	for r := range 6 {
		go func() {
			n := 7
			if r == 4 {
				n = 8 // for which ids 1 holds ranks 3 to 5
			}
			_, err := Meet(ids, r, n, nil, within(20))
			outcomes <- outcome{r, nil, err, time.Since(start)}
		}()
	}
	got := map[int]outcome{}
	for range 6 {
		o := <-outcomes
		got[o.rank] = o
	}
	wantAll(t, "another number of ranks", got, soon, func(err error) bool {
		var size *SizeError
		return errors.As(err, &size) && strings.Contains(err.Error(), "rank 4 ") && strings.Contains(err.Error(), "8")
	})
}

func TestIDsThatDoNotFit(t *testing.T) {
	m := newMaker(t)
	x, y := m.ID(), m.ID()
	for what, ids := range map[string][]byte{"twice": slices.Concat(x, x), "too many": slices.Concat(x, y, m.ID()), "cut": x[:100]} {
		var argument *ArgumentError
		if _, err := Meet(ids, 0, 2, nil, within(5)); !errors.As(err, &argument) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// One rank has them in another order.
	results := make(chan error)
	for r, ids := range [][]byte{slices.Concat(x, y), slices.Concat(x, y), slices.Concat(y, x)} {
		go func() { _, err := Meet(ids, r, 3, nil, within(20)); results <- err }()
	}
	for range 3 {
		if err := <-results; err == nil || !strings.Contains(err.Error(), "same order") {
			t.Errorf("ids in another order: %v", err)
		}
	}
	// All ids of NCCL_COMM_ID are one: it serves all ranks.
	fixed := newMaker(t, fmt.Sprintf("NCCL_COMM_ID=127.0.0.1:%d", freePort(t)))
	id := fixed.ID()
	if res := fixed.Ask(fmt.Sprintf("join %x 0", id)); res != "ok" {
		t.Fatal(res)
	}
	wantMet(t, 4, meetAll(bytes.Repeat(id, 3), 4, upTo(4), same(within(20))))
}

// A speaker that comes to the others and says nothing is named at the limit, by the others' speakers and by their parts.
func TestSilentSpeaker(t *testing.T) {
	m := newMaker(t)
	ids := idsOf(2, m)
	all, err := parseIDs(ids, 4)
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	go func() {
		c := circleOf(2, 4, 2)
		c.role = speaker
		lone, err := newMeeting(all, all[0], c, 2, within(20))
		if err != nil {
			t.Error(err)
			return
		}
		defer lone.close()
		if _, err := lone.rollCall(); err != nil {
			t.Error(err)
		}
		<-end
	}()
	got := meetAll(ids, 4, []int{0, 1}, same(within(1)))
	close(end)
	wantAll(t, "a silent speaker", got, 5*time.Second, func(err error) bool { return slices.Equal(Blamed(err), []int{2}) })
}

// A rank that fails before it can meet the others lets them know, whoever made the id for it: also those that come later.
func TestUnable(t *testing.T) {
	m := newMaker(t)
	for _, ids := range [][][]byte{{m.ID()}, {m.ID(), m.ID()}} {
		all := slices.Concat(ids...)
		done := make(chan map[int]outcome, 1)
		go func() { done <- meetAll(all, 4, []int{0, 1, 3}, same(within(60))) }()
		Unable(all, 2, 4, errors.New("no port is left"))
		for r, o := range <-done {
			var rank *RankError
			if !errors.As(o.err, &rank) || rank.Rank != 2 || o.err.Error() != "rank 2 cannot take part: no port is left" {
				t.Errorf("%d ids, rank %d: %v", len(ids), r, o.err)
			}
		}
	}
}
