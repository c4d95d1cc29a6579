package tcp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/proto"
)

// crowded is many ranks of a communicator in two processes, which one link joins.
func crowded(t *testing.T, ranks int) (nodes []*node, links [2]*Link) {
	var nets [2]*Net
	for k := range nets {
		nets[k] = NewNet()
		links[k] = nets[k].NewLink(func() {})
	}
	for r := range ranks {
		to := make([]*Link, ranks)
		for p := range to {
			if p%2 != r%2 {
				to[p] = links[r%2]
			}
		}
		nodes = append(nodes, joined(nets[r%2], to, 1, r))
	}
	a, b := pair(t)
	for k, fd := range [2]int{a, b} {
		if err := links[k].AddRail(0, fd, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, d := range nodes {
			d.Fabric.Close(0)
		}
		for _, l := range links {
			l.Close()
		}
	})
	return nodes, links
}

// What a rank tells all, and its goodbye, go once to each process, and reach each rank in it once, behind all slices.
func TestPartyTellsOnce(t *testing.T) {
	const ranks = 40
	nodes, links := crowded(t, ranks)
	for r, d := range nodes {
		for _, p := range []int{(r + 1) % ranks, (r + 5) % ranks} {
			put(t, outOf(t, d, proto.Pair, 0, p), content(r, p, 100))
		}
	}
	before := links[0].rails[0].Load().put.Load()
	for _, text := range []string{"one", "two"} {
		if err := nodes[0].Announce([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	nodes[0].Fabric.Close(hang)
	frames := uint64(3)
	if n := links[0].rails[0].Load().put.Load() - before; n > frames*(headerSize+256) {
		t.Errorf("%d bytes for %d messages to %d ranks", n, frames, ranks/2)
	}
	for r := 1; r < ranks; r += 2 {
		nodes[r].until(t, "goodbye", func() bool { return nodes[r].goneErr(0) != nil })
		wantGone(t, nodes[r].goneErr(0), 0, true)
		if got := nodes[r].heard(0); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("rank %d heard %q", r, got)
		}
		if r == 1 || r == 5 {
			if b, ok := get(t, inOf(t, nodes[r], proto.Pair, 0, 0)); !ok || string(b) != string(content(0, r, 100)) {
				t.Errorf("rank %d has not what was sent to it", r)
			}
		}
		if err := nodes[r].goneErr(2); err != nil {
			t.Errorf("rank %d is told of another one: %v", r, err)
		}
	}
}

// A goodbye says to each rank how many slices it was sent, however many ranks and frames that is, and once.
func TestGoodbyeCounts(t *testing.T) {
	const ranks, runs = 4 * MaxControl / runBytes, 3
	f := New(NewNet(), 1, 0, ranks, func() {})
	l := f.net.NewLink(func() {})
	defer l.Close()
	defer f.Close(0)
	want := make([]uint64, ranks)
	for r := 1; r < ranks; r++ {
		if err := f.Join(r, l); err != nil {
			t.Fatal(err)
		}
		want[r] = want[r-1]
		if rand.N(runs) > 0 {
			want[r] = rand.Uint64N(1 << 40)
		}
		flow := f.peers[r].out.open(proto.Pair, r%MaxChannels)
		flow.committed.Store(want[r])
		flow.freed.Store(want[r])
	}
	f.parties[0].leave()
	got := make([]string, ranks)
	for b := f.parties[0].takeQueued(nil, maxQueued); len(b) > 0; b = b[frameBytes(b):] {
		var h header
		if bad := h.decode(b); bad != "" || h.typ != frameLeave || h.length > MaxControl {
			t.Fatalf("a frame of type %d with %d bytes: %s", h.typ, h.length, bad)
		}
		for r := range got {
			if n, ok := left(b[headerSize:][:h.length], r); ok {
				got[r] += fmt.Sprint(n, " ")
			}
		}
	}
	for r := 1; r < ranks; r++ {
		if got[r] != fmt.Sprint(want[r], " ") {
			t.Errorf("rank %d was sent %d slices and is told %s", r, want[r], got[r])
		}
	}
	if got[0] != "" {
		t.Errorf("the own rank is told %s", got[0])
	}
}

// What a rail took and lost is said again by another one, also where nothing follows, and heard once.
func TestLastWordsOutliveTheirRail(t *testing.T) {
	for how, say := range map[string]func(d *node) error{
		"to one": func(d *node) error { return d.Control(1, []byte("last words")) },
		"to all": func(d *node) error { return d.Announce([]byte("last words")) },
	} {
		t.Run(how, func(t *testing.T) {
			nodes := []*node{newNode(0, 2), newNode(1, 2)}
			for _, d := range nodes {
				t.Cleanup(func() { d.Close(0) })
			}
			ours, theirs := pair(t) // nobody reads the other end
			if err := nodes[0].AddRail(1, 0, ours, nil); err != nil {
				t.Fatal(err)
			}
			if err := say(nodes[0]); err != nil {
				t.Fatal(err)
			}
			lay(t, nodes, 0, 1, 1, pair)
			_ = unix.Close(theirs)
			nodes[1].until(t, "message", func() bool { return len(nodes[1].heard(0)) == 1 })
			lay(t, nodes, 0, 1, 2, pair)
			cut(nodes[0], 1, 1) // the next lead says all again
			testkit.Eventually(t, hang, "end of the rail", func() bool { return dead(nodes[1], 0, 1) })
			if err := nodes[0].Control(1, []byte("more")); err != nil {
				t.Fatal(err)
			}
			nodes[1].until(t, "more", func() bool { return slices.Contains(nodes[1].heard(0), "more") })
			if got := nodes[1].heard(0); len(got) != 2 {
				t.Errorf("heard %q", got)
			}
		})
	}
}
