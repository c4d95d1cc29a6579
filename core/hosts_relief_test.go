package core

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/testkit/netns"
)

// Networks that let a connection be made and then carry nothing: a new one gets over it.

// The only rail, or one of two, loses large packets, among them those of a handshake.
func TestLargePacketsAreLost(t *testing.T) {
	for name, c := range map[string]struct {
		rails int
		env   []string
	}{
		"the only rail": {1, nil},
		"one of two":    {2, nil},
		"sealed":        {1, []string{sealedBy(t)}},
	} {
		t.Run(name, func(t *testing.T) {
			l := hosts(t, 2)
			for range c.rails {
				l.Rail()
			}
			l.LoseLarge(c.rails - 1)
			const times = 4
			ranks := onHosts(t, l, []int{0, 1}, 1<<18, c.env...)
			tell(ranks, times)
			finish(t, ranks, 0, times)
			disperse(t, ranks)
		})
	}
}

// A router that is to forget connections drops what belongs to them, and lets new ones be made.
func TestForgottenConnections(t *testing.T) {
	l := hosts(t, 2)
	l.Rail()
	l.Rail()
	l.Router()
	for h := range 2 { // each host is on one rail
		l.Link(h, 1-h, false)
		l.IP(h, "route add default via "+l.Address(253, h))
	}
	ranks := onHosts(t, l, []int{0, 1}, 300_000)
	const times = 10
	tell(ranks, times)
	finish(t, ranks, 0, times)
	forget(t, l)
	tell(ranks, times)
	finish(t, ranks, 0, times)
	disperse(t, ranks)
}

// A rank is killed while the path of one of its rails is gone: it is known to have ended when nobody listens any more by the other.
func TestDeathWhileARailStandsStill(t *testing.T) {
	l := hosts(t, 2)
	l.Rail()
	l.Rail()
	for rail := range 2 {
		ranks := onHosts(t, l, []int{0, 1}, 300_000, "HCCL_PEER_TIMEOUT=1000")
		tell(ranks, 1_000_000)
		reads(t, ranks[0], 0, 5)
		l.Silence(0, rail, true)
		reads(t, ranks[0], 5, 30) // by the other
		ranks[1].kill()
		line := ranks[0].line()
		for strings.HasPrefix(line, "sum ") {
			line = ranks[0].line()
		}
		if !strings.HasPrefix(line, "error") || !strings.Contains(line, "rank 1") {
			t.Errorf("rail %d: %s", rail, line)
		}
		ranks[0].kill()
		l.Silence(0, rail, false)
	}
}

// forget has the switch drop the packets of all connections of host 0.
func forget(t *testing.T, l *netns.Lab) {
	t.Helper()
	var known int
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		out, err := l.Command(0, "cat", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			const established = "01"
			if len(f) < 4 || f[3] != established {
				continue
			}
			own, far := port(t, f[1]), port(t, f[2])
			known++
			for _, pair := range [][2]uint64{{own, far}, {far, own}} {
				l.IPSwitch(fmt.Sprintf("rule add pref 5 ipproto tcp sport %d dport %d blackhole", pair[0], pair[1]))
			}
		}
	}
	if known == 0 {
		t.Fatal("host 0 has no connection")
	}
}

// port is that of an address in /proc/net/tcp.
func port(t *testing.T, address string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(address[strings.LastIndexByte(address, ':')+1:], 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
