package boot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestMeet(t *testing.T) {
	m := newMaker(t)
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 33, 64} {
		wantMet(t, n, meetAll(m.ID(), n, upTo(n), same(within(30))))
	}
}

func TestMeetOutstandingIDs(t *testing.T) {
	m := newMaker(t)
	var ids [][]byte
	for range 3000 {
		ids = append(ids, m.ID())
	}
	for _, k := range []int{2999, 0, 1500} {
		wantMet(t, 2, meetAll(ids[k], 2, upTo(2), same(within(10))))
	}
}

func TestUsedID(t *testing.T) {
	m := newMaker(t)
	id := m.ID()
	wantMet(t, 3, meetAll(id, 3, upTo(3), same(within(10))))
	for r, o := range meetAll(id, 3, upTo(3), same(within(10))) {
		var used *UsedError
		if !errors.As(o.err, &used) || used.Result() != invalidUsage || !strings.Contains(o.err.Error(), "id already used, make a new one") {
			t.Errorf("rank %d: %v", r, o.err)
		}
	}
	wantMet(t, 3, meetAll(m.ID(), 3, upTo(3), same(within(10))))
}

func TestAbsent(t *testing.T) {
	m := newMaker(t)
	var late atomic.Pointer[[]int]
	lim := func(r int) Limit {
		return Limit{Deadline: time.Now().Add(3500*time.Millisecond + time.Duration(r)*50*time.Millisecond),
			Late: func(missing []int) { late.Store(&missing) }}
	}
	id := m.ID()
	for r, o := range meetAll(id, 5, []int{0, 1, 3}, lim) {
		var absent *AbsentError
		if !errors.As(o.err, &absent) || !slices.Equal(absent.Ranks, []int{2, 4}) || !strings.Contains(o.err.Error(), "missing: 2, 4") {
			t.Errorf("rank %d: %v", r, o.err)
		}
	}
	if got := late.Load(); got == nil || !slices.Equal(*got, []int{2, 4}) {
		t.Errorf("Late was told %v", got)
	}
	// One that comes later hears why, and does not wait.
	_, err := Meet(id, 2, 5, nil, within(30))
	var absent *AbsentError
	if !errors.As(err, &absent) {
		t.Errorf("the late rank: %v", err)
	}
}

func TestDisagreement(t *testing.T) {
	m := newMaker(t)
	duplicate, size := new(DuplicateError), new(SizeError)
	// Rank 1 comes as "another" rank 0, and as one of four: everyone must hear it.
	for _, c := range []struct {
		rank, n int
		target  any
	}{{0, 3, &duplicate}, {1, 4, &size}} {
		id := m.ID()
		results := make(chan error, 2)
		go func() { _, err := Meet(id, 0, 3, nil, within(20)); results <- err }()
		go func() { _, err := Meet(id, c.rank, c.n, nil, within(20)); results <- err }()
		for range 2 {
			if err := <-results; !errors.As(err, c.target) {
				t.Errorf("rank %d of %d: %v", c.rank, c.n, err)
			}
		}
		if _, err := Meet(id, 2, 3, nil, within(20)); !errors.As(err, c.target) {
			t.Errorf("who comes later: %v", err)
		}
	}
}

func TestAbort(t *testing.T) {
	m := newMaker(t)
	cause := errors.New("stop")
	var stop atomic.Pointer[time.Time]
	lim := func(r int) Limit {
		if r != 1 {
			return within(20)
		}
		asked := 0
		return Limit{Abort: func() error {
			if asked++; asked < 10 {
				return nil
			}
			now := time.Now()
			stop.CompareAndSwap(nil, &now)
			return cause
		}}
	}
	got := meetAll(m.ID(), 4, []int{0, 1, 2}, lim)
	if got[1].err != cause {
		t.Errorf("the aborted rank: %v", got[1].err)
	}
	var gone *RankError
	for _, r := range []int{0, 2} {
		if !errors.As(got[r].err, &gone) || gone.Rank != 1 || gone.Result() != remoteError {
			t.Errorf("rank %d: %v", r, got[r].err)
		}
	}
}

func TestMakerGone(t *testing.T) {
	m := newMaker(t)
	id := m.ID()
	m.Kill()
	for r, o := range meetAll(id, 2, upTo(2), same(within(1.5))) {
		var gone *UnreachableError
		if !errors.As(o.err, &gone) || len(gone.Addrs) == 0 || !strings.Contains(o.err.Error(), gone.Addrs[0].String()) {
			t.Errorf("rank %d: %v", r, o.err)
		}
	}
}

func TestDamagedID(t *testing.T) {
	m := newMaker(t)
	for _, at := range []int{idMagic, idNumber, idSecret, idRoot, idCount} {
		id := m.ID()
		id[at] ^= 0x40
		if _, err := Meet(id, 0, 1, nil, within(0.5)); err == nil {
			t.Errorf("an id that is wrong at byte %d was believed", at)
		}
	}
	wantMet(t, 2, meetAll(m.ID(), 2, upTo(2), same(within(10))))
}

// The maker dies while one rank waits; a child of it that joined answers in its place, for this id and for others not used yet.
func TestHeir(t *testing.T) {
	m := newMaker(t)
	used, id, other := m.ID(), m.ID(), m.ID()
	wantMet(t, 2, meetAll(used, 2, upTo(2), same(within(10))))
	for _, heir := range []string{"idle", "heir", "heir"} { // two compete, one must not
		if got := m.Ask(fmt.Sprintf("%s %x", heir, id)); got != "ok" {
			t.Fatal(got)
		}
	}
	waiting := make(chan struct{})
	first := make(chan error)
	asked := 0
	go func() {
		_, err := Meet(id, 0, 3, blobOf(0), Limit{Deadline: time.Now().Add(30 * time.Second), Abort: func() error {
			if asked++; asked == 20 {
				close(waiting)
			}
			return nil
		}})
		first <- err
	}()
	<-waiting
	m.Kill()
	wantMet(t, 3, meetAll(id, 3, []int{1, 2}, same(within(30))))
	if err := <-first; err != nil {
		t.Fatalf("the rank that waited: %v", err)
	}
	wantMet(t, 2, meetAll(other, 2, upTo(2), same(within(10))))
	var was *UsedError
	if _, err := Meet(used, 0, 2, nil, within(10)); !errors.As(err, &was) {
		t.Errorf("a used id after the maker's death: %v", err)
	}
}

func TestForkWhileMakerLives(t *testing.T) {
	m := newMaker(t)
	first := m.ID()
	for range 3 { // make an id, fork, init in the children: again and again
		id := m.ID()
		if got := m.Ask(fmt.Sprintf("heir %x", id)); got != "ok" {
			t.Fatal(got)
		}
		wantMet(t, 4, meetAll(id, 4, upTo(4), same(within(10))))
	}
	wantMet(t, 2, meetAll(first, 2, upTo(2), same(within(10))))
	// The children stood by, each with a thread, until their ids were used.
	tasks := fmt.Sprintf("/proc/%d/task/%[1]d/children", m.Cmd.Process.Pid)
	children, err := os.ReadFile(tasks)
	if err != nil || len(strings.Fields(string(children))) != 3 {
		t.Fatalf("children: %q, %v", children, err)
	}
	for _, pid := range strings.Fields(string(children)) {
		settled(t, func() bool {
			threads, err := os.ReadDir("/proc/" + pid + "/task")
			return err == nil && len(threads) == 1
		})
	}
	if got := m.Ask("loaded"); got != "sockets 0" {
		t.Errorf("a child of a process with the core loaded has %s", got)
	}
}

// A child that makes ids of its own answers for them, and for its maker's once that is dead.
func TestForkedMaker(t *testing.T) {
	m := newMaker(t)
	id := m.ID()
	own, err := hex.DecodeString(m.Ask(fmt.Sprintf("child %x", id)))
	if err != nil {
		t.Fatal(err)
	}
	if !m.Out.Scan() || m.Out.Text() != "ok" {
		t.Fatal(m.Out.Text())
	}
	a, _ := parseID(id)
	if b, err := parseID(own); err != nil || b.root == a.root || b.addrs[0] == a.addrs[0] {
		t.Errorf("the child's id is of its parent's root: %v", err)
	}
	wantMet(t, 3, meetAll(own, 3, upTo(3), same(within(10))))
	m.Kill()
	wantMet(t, 3, meetAll(id, 3, upTo(3), same(within(10))))
}

// Back-to-back jobs at one fixed address.
func TestFixedAddress(t *testing.T) {
	port := freePort(t)
	env := fmt.Sprintf("NCCL_COMM_ID=127.0.0.1:%d", port)
	a, b := newMaker(t, env), newMaker(t, env)
	id := a.ID()
	if string(id) != string(b.ID()) {
		t.Fatal("two processes make different ids of one NCCL_COMM_ID")
	}
	for k := range 10 {
		got := make(chan map[int]outcome)
		go func() { got <- meetAll(id, 3, upTo(3), same(within(20))) }() // the others may come before rank 0 listens
		root := a
		if k%2 == 1 {
			root = b
		}
		if res := root.Ask(fmt.Sprintf("join %x 0", id)); res != "ok" {
			t.Fatal(res)
		}
		wantMet(t, 3, <-got)
	}
	if _, err := Meet(id, 1, 3, nil, within(0.5)); err == nil || !strings.Contains(err.Error(), "rank 0") {
		t.Errorf("nobody listens: %v", err)
	}
}
