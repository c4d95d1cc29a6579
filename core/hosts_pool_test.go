package core

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/internal/testkit/netns"
)

// poolRole is one of two ranks of several communicators. Told "make", it makes the next one and sums on it; told "sum", it sums on the
// first; told "leave K", it destroys number K. After each it says how many connections its host has; told "count", how many it has dialled
// ever. At the end it leaves them all.
func poolRole(in *bufio.Scanner, args []string) error {
	r, _ := strconv.Atoi(args[0])
	ids := args[1:]
	var comms []*Comm
	for in.Scan() {
		word, arg, _ := strings.Cut(in.Text(), " ")
		k := 0
		var err error
		switch word {
		case "make":
			var c *Comm
			id, _ := hex.DecodeString(ids[len(comms)])
			if c, err = initRank(spec(id, 2, r, true)); err == nil {
				comms = append(comms, c)
				k = len(comms) - 1
				err = sum(c, 1000)
			}
		case "sum":
			err = sum(comms[0], 100_000)
		case "leave":
			k, _ = strconv.Atoi(arg)
			err = comms[k].Destroy()
			comms = append(comms[:k], comms[k+1:]...)
		case "look", "count":
		}
		if err != nil {
			fmt.Println("error", err)
			return err
		}
		if word == "count" {
			fmt.Println(dialled())
		} else {
			fmt.Println(connections())
		}
	}
	for _, c := range comms {
		if err := c.Destroy(); err != nil {
			return err
		}
	}
	return nil
}

// connections counts those of this network namespace.
func connections() (n int) {
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			const established = "01"
			if f := strings.Fields(line); len(f) > 3 && f[3] == established {
				n++
			}
		}
	}
	return n
}

// dialled counts the connections that this network namespace has ever begun.
func dialled() (n int) {
	text, _ := os.ReadFile("/proc/self/net/snmp")
	for line := range strings.Lines(string(text)) { // the second of the two has the numbers
		if f := strings.Fields(line); len(f) > 5 && f[0] == "Tcp:" {
			n, _ = strconv.Atoi(f[5])
		}
	}
	return n
}

// pooled starts two ranks on two hosts that can make as many communicators as times.
func pooled(t *testing.T, times int, env ...string) (l *netns.Lab, ranks []*child) {
	t.Helper()
	l = hosts(t, 2)
	l.Rail()
	m, err := testkit.StartMakerBy(l.Command(0, program))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.End)
	var ids []string
	for range times {
		ids = append(ids, hex.EncodeToString(m.ID()))
	}
	for r := range 2 {
		cmd := l.Command(r, os.Args[0])
		cmd.Env = env
		ranks = append(ranks, startBy(t, cmd, "pool", r, strings.Join(ids, " ")))
	}
	return l, ranks
}

// asks has both ranks do something, and returns how many connections their hosts have then.
func asks(t *testing.T, ranks []*child, what string) (counts [2]int) {
	t.Helper()
	for _, c := range ranks {
		fmt.Fprintln(c.in, what)
	}
	for r, c := range ranks {
		line := c.line()
		n, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("rank %d: %s", r, line)
		}
		counts[r] = n
	}
	return counts
}

// Two processes have the same connections for fifty communicators as for one, and keep them when communicators go.
func TestCommunicatorsShareConnections(t *testing.T) {
	const times = 50
	_, ranks := pooled(t, times)
	first := asks(t, ranks, "make")
	for range times - 1 {
		asks(t, ranks, "make")
	}
	settled := func() bool { return asks(t, ranks, "look") == first } // those of the meeting are on their way out
	testkit.Eventually(t, patience, "end of all connections but the first", settled)
	for range times / 2 {
		asks(t, ranks, "leave 1")
	}
	asks(t, ranks, "sum")
	testkit.Eventually(t, patience, "the first connection and no other", settled)
	disperse(t, ranks)
}

// Connections without use are closed and made again, by whichever end, and nobody notices.
func TestIdleConnectionsComeBack(t *testing.T) {
	for _, env := range []string{"HCCL_PRECONNECT=1", "HCCL_PRECONNECT=0"} {
		t.Run(env, func(t *testing.T) {
			_, ranks := pooled(t, 2, env, "HCCL_NET_IDLE=0.2")
			asks(t, ranks, "make")
			for range 3 {
				testkit.Eventually(t, patience, "end of the connections", func() bool { return asks(t, ranks, "look") == [2]int{} })
				before := asks(t, ranks, "count")
				asks(t, ranks, "sum") // they may be closed again when it returns
				if after := asks(t, ranks, "count"); after == before {
					t.Errorf("a sum without a new connection: %v have been dialled", after)
				}
			}
			asks(t, ranks, "make")
			disperse(t, ranks)
		})
	}
}

// A rail has as many connections as it is to have sockets, by the end that dials.
func TestSocketsOfARail(t *testing.T) {
	_, ranks := pooled(t, 1, "NCCL_SOCKET_NTHREADS=2", "NCCL_NSOCKS_PERTHREAD=2")
	asks(t, ranks, "make")
	testkit.Eventually(t, patience, "four connections", func() bool { return asks(t, ranks, "look") == [2]int{4, 4} })
	asks(t, ranks, "sum")
	disperse(t, ranks)
}
