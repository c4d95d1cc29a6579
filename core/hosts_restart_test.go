package core

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/internal/testkit/netns"
)

// A process is killed, and another one takes its port: it is somebody else.

// signRole is one rank of three of several communicators. Told "make K" it makes number K, "sum K" it all-reduces on it what has
// sign(K) all over, "go K" it does so until that fails. It says "done" or "error ..." after each, and goes on either way.
func signRole(in *bufio.Scanner, args []string) error {
	r, _ := strconv.Atoi(args[0])
	ids := args[1:]
	comms := make([]*Comm, len(ids))
	for in.Scan() {
		word, arg, _ := strings.Cut(in.Text(), " ")
		k, _ := strconv.Atoi(arg)
		var err error
		switch word {
		case "make":
			id, _ := hex.DecodeString(ids[k])
			comms[k], err = initRank(spec(id, 3, r, true))
		case "sum":
			err = sumOfSigns(comms[k], k)
		case "go":
			for err == nil {
				err = sumOfSigns(comms[k], k)
			}
		}
		if err != nil {
			fmt.Println("error", err)
		} else {
			fmt.Println("done")
		}
	}
	for _, c := range comms {
		if c == nil {
			continue
		}
		if err := c.Abort(); err != nil {
			return err
		}
	}
	return nil
}

// sign is what data of a communicator are known by, wherever they are cut.
func sign(k int) []byte { return fmt.Appendf(nil, "<data of communicator %d>", k) }

func sumOfSigns(c *Comm, k int) error {
	data := bytes.Repeat(sign(k), 40_000)
	result := make([]byte, len(data))
	call := Call{Func: coll.AllReduce, Type: coll.Uint8, Red: coll.Max, Count: uint64(len(data)), Send: device.BytesPtr(data),
		Recv: device.BytesPtr(result)}
	err := do(c, &call)
	if err == nil && !bytes.Equal(data, result) {
		err = fmt.Errorf("communicator %d brings other data", k)
	}
	return err
}

const portOfAll = 42002 // each process is alone on its host

// signing makes one rank on each of three hosts with one rail, and returns how a rank is started.
func signing(t *testing.T, env ...string) (l *netns.Lab, begin func(r int) *child) {
	t.Helper()
	l = hosts(t, 3)
	l.Rail()
	m, err := testkit.StartMakerBy(l.Command(0, program))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.End)
	ids := hex.EncodeToString(m.ID()) + " " + hex.EncodeToString(m.ID())
	return l, func(r int) *child {
		cmd := l.Command(r, os.Args[0])
		cmd.Env = append(env, fmt.Sprintf("HCCL_PORT_RANGE=%d-%[1]d", portOfAll), "HCCL_PEER_TIMEOUT=1000")
		return startBy(t, cmd, "sign", r, ids)
	}
}

// finds waits for ranks to say what begins so and has a fact in it.
func finds(t *testing.T, ranks []*child, begins, fact string) {
	t.Helper()
	testkit.Within(t, patience, begins, func() {
		for r, c := range ranks {
			if line := c.line(); !strings.HasPrefix(line, begins) || !strings.Contains(line, fact) {
				t.Errorf("rank %d: %s, wanted %s %s", r, line, begins, fact)
			}
		}
	})
}

func order(ranks []*child, what string) {
	for _, c := range ranks {
		fmt.Fprintln(c.in, what)
	}
}

// The survivors hear which rank has gone, however that was and whoever listens at its address now. To the new process nothing is
// written that was for the old one, and it can be in the next communicator.
func TestAnotherProcessAtAnOldAddress(t *testing.T) {
	for name, c := range map[string]struct {
		env   []string
		amid  bool // an operation is under way, else no connection is there
		quiet bool // the host is cut off from before the end of one until the other listens
	}{
		"connections are at rest": {env: []string{"HCCL_NET_IDLE=0.2"}},
		"amid an operation":       {amid: true},
		"the host was cut off":    {amid: true, quiet: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, begin := signing(t, c.env...)
			ranks := []*child{begin(0), begin(1), begin(2)}
			order(ranks, "make 0")
			finds(t, ranks, "done", "")
			order(ranks, "sum 0")
			finds(t, ranks, "done", "")
			if c.amid {
				before := l.Sent(2, netns.Device(0))
				order(ranks, "go 0")
				testkit.Eventually(t, patience, "data", func() bool { return l.Sent(2, netns.Device(0)) > before+8<<20 })
			} else {
				testkit.Eventually(t, patience, "rest", func() bool { return socketsOn(t, l, 2, "01") == 0 })
			}
			l.Silence(2, 0, c.quiet)
			ranks[2].kill()
			seen := l.Capture(2, 0)
			ranks[2] = begin(2)
			order(ranks[2:], "make 1")
			testkit.Eventually(t, patience, "a listener", func() bool { return socketsOn(t, l, 2, "0A") == 1 })
			l.Silence(2, 0, false)
			if !c.amid {
				order(ranks[:2], "sum 0")
			}
			finds(t, ranks[:2], "error", "rank 2 is gone")
			order(ranks[:2], "make 1")
			finds(t, ranks, "done", "")
			order(ranks, "sum 1")
			finds(t, ranks, "done", "")
			disperse(t, ranks)
			if old, now := newSigns(seen.Stop()); old > 0 || now == 0 {
				t.Errorf("new connections of host 2 carried %d packets with data of the old communicator, %d with the new one's", old, now)
			}
		})
	}
}

// socketsOn counts those at the ranks' port on a host that are in a state, by its number in /proc/net/tcp.
func socketsOn(t *testing.T, l *netns.Lab, host int, state string) (n int) {
	t.Helper()
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		out, err := l.Command(host, "cat", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 3 && f[3] == state && (port(t, f[1]) == portOfAll || port(t, f[2]) == portOfAll) {
				n++
			}
		}
	}
	return n
}

// newSigns counts the packets of connections that were begun in a recording and have data of communicator 0 and 1.
func newSigns(packets [][]byte) (old, now int) {
	const mac, head, syn = 14, 20, 2
	begun := map[string]bool{}
	for _, p := range packets {
		if len(p) < mac+2*head || p[mac] != 0x45 || p[mac+9] != unix.IPPROTO_TCP {
			continue
		}
		ends := []string{string(p[mac+12:mac+16]) + string(p[mac+head:mac+head+2]), string(p[mac+16:mac+20]) + string(p[mac+head+2:mac+head+4])}
		slices.Sort(ends)
		connection := ends[0] + ends[1]
		begun[connection] = begun[connection] || p[mac+head+13]&syn != 0
		if begun[connection] && bytes.Contains(p, sign(0)) {
			old++
		}
		if begun[connection] && bytes.Contains(p, sign(1)) {
			now++
		}
	}
	return old, now
}
