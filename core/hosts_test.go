package core

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/internal/testkit/netns"
)

// Ranks on hosts of their own: each is a process in a network namespace.

// hostRole is one rank. After init it says "ready"; told a number, it makes so many all-reduces, each of other values, and says "sum K"
// after each and "done" at the end; told nothing more, it leaves.
func hostRole(in *bufio.Scanner, args []string) error {
	id, err := hex.DecodeString(args[0])
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(args[1])
	r, _ := strconv.Atoi(args[2])
	count, _ := strconv.ParseUint(args[3], 10, 64)
	c, err := initRank(spec(id, n, r, true))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for seed := uint64(1); in.Scan(); {
		times, _ := strconv.Atoi(in.Text())
		for k := range times {
			p := (&shape{fn: coll.AllReduce, typ: coll.Int32, n: n, count: count, seed: seed}).part(r)
			seed++
			if err = do(c, &p.call); err == nil {
				err = p.check()
			}
			if err != nil {
				fmt.Println("error", err)
				in.Scan() // who leaves at once is one more fault for the others to report
				return err
			}
			fmt.Println("sum", k)
		}
		fmt.Println("done")
	}
	return c.Destroy()
}

// hosts are as many, for tests that take seconds.
func hosts(t *testing.T, n int) *netns.Lab {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	return netns.New(t, n)
}

// onHosts starts a rank on each host of at, with all-reduces of count elements, and returns when all are ready.
func onHosts(t *testing.T, l *netns.Lab, at []int, count int, env ...string) []*child {
	t.Helper()
	return onDifferentHosts(t, l, at, count, func(int) []string { return env })
}

// onDifferentHosts starts ranks whose environment depends on their host.
func onDifferentHosts(t *testing.T, l *netns.Lab, at []int, count int, env func(host int) []string) []*child {
	t.Helper()
	maker := l.Command(at[0], program)
	maker.Env = append(os.Environ(), env(at[0])...)
	m, err := testkit.StartMakerBy(maker)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.End)
	id := hex.EncodeToString(m.ID())
	ranks := make([]*child, len(at))
	for r, h := range at {
		cmd := l.Command(h, os.Args[0])
		cmd.Env = env(h)
		ranks[r] = startBy(t, cmd, "host", id, len(at), r, count)
	}
	for r, c := range ranks {
		if got := c.line(); got != "ready" {
			t.Fatalf("rank %d: %s", r, got)
		}
	}
	return ranks
}

// tell gives all ranks a number of all-reduces.
func tell(ranks []*child, times int) {
	for _, c := range ranks {
		fmt.Fprintln(c.in, times)
	}
}

// reads takes what a rank says of the all-reduces first to last-1 of those that it was told of.
func reads(t *testing.T, c *child, first, last int) {
	t.Helper()
	for k := first; k < last; k++ {
		if got := c.line(); got != fmt.Sprint("sum ", k) {
			t.Fatalf("all-reduce %d: %s", k, got)
		}
	}
}

// finish waits for all ranks to have made times all-reduces, of which begun were read from rank 0.
func finish(t *testing.T, ranks []*child, begun, times int) {
	t.Helper()
	for r, c := range ranks {
		if r > 0 {
			begun = 0
		}
		reads(t, c, begun, times)
		if got := c.line(); got != "done" {
			t.Fatalf("rank %d: %s", r, got)
		}
	}
}

// disperse lets the ranks leave.
func disperse(t *testing.T, ranks []*child) {
	t.Helper()
	for _, c := range ranks {
		c.in.Close()
	}
	for r, c := range ranks {
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// Two ranks on each of two hosts: data of neighbours stay on their host, all others go by both rails, and by nothing else.
func TestTwoHosts(t *testing.T) {
	l := hosts(t, 2)
	l.Decoys()
	rails := []int{l.Rail(), l.Rail()}
	for h := range 2 {
		for _, k := range rails {
			l.Shape(h, k, 200)
		}
	}
	const count, times = 1 << 20, 8
	ranks := onHosts(t, l, []int{0, 0, 1, 1}, count)
	tell(ranks, times)
	finish(t, ranks, 0, times)
	disperse(t, ranks)
	var all uint64
	for _, k := range rails {
		sent := l.Sent(0, netns.Device(k))
		all += sent
		if least := uint64(times * count * 4 / 10); sent < least {
			t.Errorf("rail %d carried %d bytes, wanted %d", k, sent, least)
		}
	}
	// In two shots each of 2 ranks sends each of 2 a quarter of the data, and once more of the sums; by a ring it is less.
	if most := uint64(2 * times * count * 4); all < most/2 || all > most*6/5 {
		t.Errorf("host 0 sent %d bytes to the other host, wanted at most about %d", all, most)
	}
	for _, d := range []string{"docker0", "alone0", "lo"} {
		if n := l.Sent(0, d); n > 128<<10 {
			t.Errorf("%s carried %d bytes", d, n)
		}
	}
}

// A rail goes in the middle of an all-reduce, noticed or not, with one socket or several, and comes back: all sums are right, and it is
// used again.
func TestRailGoesAndComesBack(t *testing.T) {
	for name, cut := range map[string]func(l *netns.Lab, rail int, off bool){
		"link down": func(l *netns.Lab, rail int, off bool) { l.Link(1, rail, !off) },
		"silent":    func(l *netns.Lab, rail int, off bool) { l.Silence(0, rail, off) },
	} {
		sockets := map[string]string{"link down": "NCCL_SOCKET_NTHREADS=1", "silent": "NCCL_SOCKET_NTHREADS=3"}
		t.Run(name, func(t *testing.T) {
			l := hosts(t, 2)
			lost := l.Rail() // the rail of the first connection
			if other := l.Rail(); name == "link down" {
				lost = other
			}
			for h := range 2 {
				l.Shape(h, 0, 300)
				l.Shape(h, 1, 300)
			}
			ranks := onHosts(t, l, []int{0, 1}, 1<<20, sockets[name])
			const times = 20
			tell(ranks, times)
			reads(t, ranks[0], 0, 4)
			cut(l, lost, true)
			finish(t, ranks, 4, times)
			cut(l, lost, false)
			before := l.Sent(0, netns.Device(lost))
			testkit.Eventually(t, patience, "use of the rail that is back", func() bool {
				tell(ranks, 2)
				finish(t, ranks, 0, 2)
				return l.Sent(0, netns.Device(lost)) > before+2<<20
			})
			disperse(t, ranks)
		})
	}
}

// The only rail goes and comes back: nothing fails.
func TestOutage(t *testing.T) {
	l := hosts(t, 2)
	rail := l.Rail()
	ranks := onHosts(t, l, []int{0, 1}, 100_000)
	const times = 400
	tell(ranks, times)
	reads(t, ranks[0], 0, 5)
	l.Silence(1, rail, true)
	quiet := l.Sent(0, netns.Device(rail))
	testkit.Eventually(t, patience, "a retransmission", func() bool { // so that something was lost
		now := l.Sent(0, netns.Device(rail))
		defer func() { quiet = now }()
		return now > quiet
	})
	l.Silence(1, rail, false)
	finish(t, ranks, 5, times)
	disperse(t, ranks)
}

// A rank that is killed on another host is named by all.
func TestDeathOnAnotherHost(t *testing.T) {
	l := hosts(t, 3)
	l.Rail()
	l.Rail()
	ranks := onHosts(t, l, []int{0, 1, 2}, 300_000)
	tell(ranks, 1_000_000)
	reads(t, ranks[0], 0, 5)
	ranks[2].kill()
	for r, c := range ranks[:2] {
		line := c.line()
		for strings.HasPrefix(line, "sum ") {
			line = c.line()
		}
		if !strings.HasPrefix(line, "error") || !strings.Contains(line, "rank 2 is gone") {
			t.Errorf("rank %d: %s", r, line)
		}
	}
}
