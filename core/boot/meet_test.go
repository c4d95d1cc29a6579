package boot

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestMeet(t *testing.T) {
	m := newMaker(t)
	nearAndApart(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 33, 64} {
			wantMet(t, n, meetAll(m.ID(), n, upTo(n), same(within(30))))
		}
	})
}

// nearAndApart runs a test with ranks as threads of this process, and as if each were a process.
func nearAndApart(t *testing.T, test func(t *testing.T)) {
	t.Run("near", test)
	apart.Store(true)
	defer apart.Store(false)
	t.Run("apart", test)
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
		if !errors.As(o.err, &absent) || !slices.Equal(absent.Ranks, []int{2, 4}) || !strings.Contains(o.err.Error(), "missing: ranks 2, 4") {
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

// Where a listener takes connections but does not greet, the race ends, so that the rank tries again, and the reason says so.
func TestSilentListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := newRace(challengeMagicValue, [8]byte{}, []netip.AddrPort{l.Addr().(*net.TCPAddr).AddrPort()}, nil)
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if s, _, _, err := r.turn(); s != nil || err != nil {
		t.Fatalf("before its time has passed: %v, %v", s, err)
	}
	r.since = r.since.Add(-2 * greetTime)
	if _, _, _, err := r.turn(); err != errNobody || r.why[0] != errSilent.Error() {
		t.Errorf("%v, because %q", err, r.why[0])
	}
}

// Nothing answers at an address of a cable's network: HCCL_PEER_TIMEOUT ends that, here the only limit, for the maker of the id and for
// other ranks.
func TestHostThatAnswersNothing(t *testing.T) {
	if !inside(t, "ip link add e0 type veth peer name far0; ip addr add 10.7.7.1/24 dev e0; ip link set e0 up; ip link set far0 up") {
		return
	}
	nowhere := netip.MustParseAddrPort("10.7.7.7:9")
	id := newMaker(t).ID()
	id[idCount] = 1
	copy(id[idAddresses:], packAddress(nil, nowhere.Addr()))
	lim := Limit{Peer: 300 * time.Millisecond}
	var gone *UnreachableError
	if _, err := Meet(id, 0, 2, nil, lim); !errors.As(err, &gone) || !strings.Contains(err.Error(), "HCCL_PORT_RANGE") {
		t.Errorf("the maker: %v", err)
	}
	var silent *SilentError
	if _, err := Dial([]netip.AddrPort{nowhere}, Key{}, nil, 0, 1, lim); !errors.As(err, &silent) || silent.Gone {
		t.Errorf("a rank: %v", err)
	}
}
