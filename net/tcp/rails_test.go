package tcp

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/proto"
)

// cut ends a rail as a firewall would: both ends see a reset, or one of them alone notices.
func cut(d *node, peer, rail int) {
	if c := d.rail(peer, rail); c != nil {
		_ = unix.Shutdown(c.fd, unix.SHUT_RDWR)
	}
}

// Slices and messages come once, whole and in order while rails between three ranks are cut and laid anew all the time.
func TestRailsThatComeAndGo(t *testing.T) {
	comeAndGo(t, false, 2000)
	comeAndGo(t, true, 2000)
}

func comeAndGo(t *testing.T, polls bool, rounds int) {
	const rails = 3
	nodes := railed(t, 3, rails, loopback)
	for _, d := range nodes {
		d.polls = polls
	}
	var wait sync.WaitGroup
	var over atomic.Bool
	wait.Go(func() {
		for k := 0; !over.Load(); k++ {
			a, b, rail := k%3, (k+1)%3, 1+k%2 // rail 0 stays
			cut(nodes[a], b, rail)
			testkit.Eventually(t, hang, "end of a rail", func() bool {
				return over.Load() || dead(nodes[a], b, rail) && dead(nodes[b], a, rail)
			})
			if !over.Load() {
				lay(t, nodes, a, b, rail, loopback)
			}
			nodes[a].Tend()
		}
	})
	var work sync.WaitGroup
	for _, d := range nodes {
		work.Go(func() { exchange(t, d, rounds) })
	}
	work.Wait()
	over.Store(true)
	wait.Wait()
	if nodes[0].cuts.Load() == 0 {
		t.Error("no rail of rank 0 failed: the test shows nothing")
	}
}

func dead(d *node, peer, rail int) bool {
	return d.rail(peer, rail).state.Load() == railDead
}

// A rail whose slices go nowhere is suspected once others take its place: what it had arrives by them, and what it brings later, when
// it moves again, is dropped.
func TestSuspectRail(t *testing.T) {
	nodes := railed(t, 2, 2, loopback)
	out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
	p := nodes[0].links[1]
	p.rails[0].Load().blocked.Store(true) // all goes by rail 1
	const n = slots / 2
	for k := range n {
		put(t, out, content(0, k, 5000))
	}
	nodes[1].until(t, "slices", func() bool { return nodes[1].peers[0].in.open(proto.Pair, 0).arrived.Load() == n })
	p.rails[0].Load().blocked.Store(false)
	p.rails[1].Load().state.Store(railSuspect)
	p.orphans.Or(1 << 1) // as if none of it had arrived
	p.flush()
	for k := range n {
		nodes[1].until(t, "slice", func() bool {
			b, ok := get(t, in)
			if ok && !bytes.Equal(b, content(0, k, 5000)) {
				t.Fatalf("slice %d differs", k)
			}
			return ok
		})
	}
	testkit.Eventually(t, hang, "use of both rails", func() bool { // it moves, as the kernel says
		nodes[0].Tend()
		return p.live() == 3
	})
	for k := range 3 * slots {
		nodes[0].until(t, "room", func() bool { return put(t, out, content(1, k, 300)) })
		nodes[1].until(t, "slice", func() bool {
			b, ok := get(t, in)
			if ok && !bytes.Equal(b, content(1, k, 300)) {
				t.Fatalf("slice %d differs", k)
			}
			return ok
		})
	}
}

// A rail is given up by both ends when one of them does so, and its place can be taken; that of the only rail too, and what it had
// goes by the new one.
func TestRailThatIsGivenUp(t *testing.T) {
	nodes := railed(t, 2, 2, loopback)
	p := nodes[0].links[1]
	p.drops.Or(1 << 1)
	p.rails[1].Load().fail(&GoneError{Cause: errStill})
	testkit.Eventually(t, hang, "end of the rail", func() bool { return dead(nodes[1], 0, 1) })
	lay(t, nodes, 0, 1, 1, loopback)
	if nodes[0].links[1].live() != 3 || nodes[1].links[0].live() != 3 {
		t.Error("a rail that was laid anew is not used")
	}
	cut(nodes[0], 1, 1)
	testkit.Eventually(t, hang, "end of the rail", func() bool { return dead(nodes[0], 1, 1) })
	out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
	nodes[1].Take() // it does not read
	nodes[0].links[1].Part()
	nodes[0].rail(1, 0).fail(&GoneError{Cause: errStill}) // for want of an answer
	for k := range slots {
		put(t, out, content(0, k, 5000))
	}
	lay(t, nodes, 1, 0, 0, loopback)
	nodes[1].Give()
	for k := range slots {
		nodes[1].until(t, "slice", func() bool {
			b, ok := get(t, in)
			if ok && !bytes.Equal(b, content(0, k, 5000)) {
				t.Fatalf("slice %d differs", k)
			}
			return ok
		})
	}
	if err := cmp.Or(nodes[0].goneErr(1), nodes[1].goneErr(0)); err != nil {
		t.Error(err)
	}
}

// Descriptors of rails that failed do not pile up.
func TestDeadRailsAreClosed(t *testing.T) {
	nodes := railed(t, 2, 2, loopback)
	before := kept.count()
	for range 20 {
		cut(nodes[0], 1, 1)
		for k, d := range nodes {
			testkit.Eventually(t, hang, "end of the rail", func() bool { return dead(d, 1-k, 1) })
		}
		lay(t, nodes, 0, 1, 1, loopback)
	}
	late := time.Now().Add(hang)
	for kept.count() > before && time.Now().Before(late) {
		for _, d := range nodes {
			d.Tend()
		}
	}
	if n := kept.count(); n > before {
		t.Errorf("%d descriptors, %d before", n, before)
	}
}

// Both rails carry slices where one alone is full.
func TestRailsShareTheLoad(t *testing.T) {
	nodes := railed(t, 2, 2, loopback)
	const channels = 8
	var ins []proto.In
	for c := range channels {
		out := outOf(t, nodes[0], proto.Pair, c, 1)
		ins = append(ins, inOf(t, nodes[1], proto.Pair, c, 0))
		for k := 0; put(t, out, content(c, k, MaxSlice)); k++ {
		}
	}
	var by []uint8
	nodes[0].peers[1].each(func(_ proto.Kind, _ int, f *outFlow) {
		for seq := range f.taken.Load() {
			by = append(by, f.ring[seq].rail)
		}
	})
	if !slices.Contains(by, 0) || !slices.Contains(by, 1) {
		t.Errorf("%d slices went by rails %v", len(by), slices.Compact(by))
	}
	for c, in := range ins {
		for k := range slots {
			nodes[1].until(t, "slice", func() bool {
				b, ok := get(t, in)
				if ok && !bytes.Equal(b, content(c, k, MaxSlice)) {
					t.Fatalf("slice %d of channel %d differs", k, c)
				}
				return ok
			})
		}
	}
}

// The ends of a connection take numbers of their own for rails beside those that stand still, and none that is in use.
func TestSpareNumbers(t *testing.T) {
	nodes := railed(t, 2, 1, loopback)
	for k, want := range []int{MaxPaths - 1, MaxPaths - 3, MaxPaths - 5, MaxPaths - 7, -1} {
		if got := nodes[0].links[1].Spare(false); got != want {
			t.Errorf("one end has number %d left, want %d", got, want)
		}
		if got := nodes[1].links[0].Spare(true); k < 3 && got != want-1 || k == 3 && got != -1 { // rail 0 is there
			t.Errorf("the other has number %d left, want one below %d", got, want)
		}
		if k == 4 {
			break
		}
		lay(t, nodes, 0, 1, want, loopback)
		if k < 3 {
			lay(t, nodes, 0, 1, want-1, loopback)
		}
	}
	if stuck := nodes[0].links[1].Stuck(); stuck != 0 {
		t.Errorf("idle rails are stuck since %v", stuck)
	}
}

// A rail that is let go of while both ends are in the middle of sending ends in order: all that was begun by it arrives.
func TestRailsAreLetGoUnderLoad(t *testing.T) {
	nodes := railed(t, 2, 2, loopback)
	const channels = 16
	nodes[0].Take() // its process does not read
	for c := range channels {
		for out := outOf(t, nodes[1], proto.Pair, c, 0); put(t, out, make([]byte, MaxSlice)); {
		}
	}
	for k := range 2 {
		testkit.Eventually(t, hang, "sockets that are full", func() bool { return nodes[1].rail(0, k).blocked.Load() })
	}
	out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
	put(t, out, content(0, 0, 5000))
	nodes[0].links[1].LetGo(1)
	nodes[1].until(t, "slice beside the goodbye", func() bool { _, ok := get(t, in); return ok })
	testkit.Eventually(t, hang, "goodbye", func() bool { return nodes[1].rail(0, 1).over.Load() })
	nodes[0].Give()
	for c := range channels {
		in := inOf(t, nodes[0], proto.Pair, c, 1)
		for range slots {
			nodes[0].until(t, "slice", func() bool { _, ok := get(t, in); return ok })
		}
	}
	testkit.Eventually(t, hang, "end of the rail", func() bool { return dead(nodes[0], 1, 1) && dead(nodes[1], 0, 1) })
	if n := nodes[0].cuts.Load() + nodes[1].cuts.Load(); n > 0 || !nodes[0].links[1].Live(0) {
		t.Errorf("%d rails failed", n)
	}
}

// How much a socket may hold is bounded where rails share the load, and there alone.
func TestLoneRailsHoldAsMuchAsTheyLike(t *testing.T) {
	nodes := railed(t, 2, 1, loopback)
	c := nodes[0].links[1].rails[0].Load()
	water := func() int {
		t.Helper()
		n, err := unix.GetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	sends := func() {
		c.measure(&unix.TCPInfo{Busy_time: c.pulse.busy + 1_000_000, Bytes_acked: c.pulse.acked + 100<<20})
	}
	before := water()
	if sends(); water() != before {
		t.Errorf("a lone rail is bounded to %d bytes, as it came %d", water(), before)
	}
	lay(t, nodes, 0, 1, 1, loopback)
	sends()
	if n := water(); n < lowWater || n > highWater {
		t.Errorf("one rail of two is bounded to %d bytes", n)
	}
	nodes[0].links[1].LetGo(1)
	testkit.Eventually(t, hang, "end of the other rail", func() bool { return dead(nodes[0], 1, 1) })
	if sends(); water() != 0 { // which the kernel takes for what the system has set
		t.Errorf("a rail that is alone again is bounded to %d bytes", water())
	}
}

// A suspect is no reason to take the other process for ended when the last other rail fails: it is used again.
func TestSuspectOutlivesOthers(t *testing.T) {
	nodes := railed(t, 2, 2, loopback)
	out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
	for a, d := range nodes {
		d.rail(1-a, 1).state.Store(railSuspect)
	}
	cut(nodes[0], 1, 0)
	for a, d := range nodes {
		testkit.Eventually(t, hang, "end of the other rail", func() bool { return dead(d, 1-a, 0) })
	}
	put(t, out, content(0, 0, 5000))
	nodes[1].until(t, "slice", func() bool {
		b, ok := get(t, in)
		return ok && bytes.Equal(b, content(0, 0, 5000))
	})
	for a, d := range nodes {
		if err := d.links[1-a].Lost(); err != nil {
			t.Errorf("rank %d: %v", a, err)
		}
	}
}
