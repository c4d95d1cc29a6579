package core

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"hccl.dev/hccl/internal/testkit"
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

// All rails of a host are gone for longer than one may stand still, and come back one after the other, first either of them: nobody takes
// the others for ended.
func TestAllRailsComeBack(t *testing.T) {
	l := hosts(t, 3)
	l.Rail()
	l.Rail()
	ranks := onHosts(t, l, []int{0, 1, 2}, 1<<19)
	const times, most = 40, 1_000_000
	tell(ranks, most)
	reads(t, ranks[0], 0, times)
	for round := range 4 {
		for rail := range 2 {
			l.Silence(1, rail, true)
		}
		testkit.Eventually(t, time.Minute, "retransmissions", func() bool { return resent(t, l, 0) >= 6 }) // 4 s, on old kernels more
		for k := range 2 {
			l.Silence(1, (round+k)%2, false)
		}
		reads(t, ranks[0], (round+1)*times, (round+2)*times)
	}
	for _, r := range ranks {
		r.kill()
	}
}

// resent is how often in turn the kernel of a host has sent again, at most, what was to go by one of its connections.
func resent(t *testing.T, l *netns.Lab, host int) (most uint64) {
	t.Helper()
	for _, f := range established(t, l, host) {
		n, err := strconv.ParseUint(f[6], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	return most
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
	known := established(t, l, 0)
	if known == nil {
		t.Fatal("host 0 has no connection")
	}
	for _, f := range known {
		own, far := port(t, f[1]), port(t, f[2])
		for _, pair := range [][2]uint64{{own, far}, {far, own}} {
			l.IPSwitch(fmt.Sprintf("rule add pref 5 ipproto tcp sport %d dport %d blackhole", pair[0], pair[1]))
		}
	}
}

// established are the lines of /proc/net/tcp of the connections of a host.
func established(t *testing.T, l *netns.Lab, host int) (list [][]string) {
	t.Helper()
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		out, err := l.Command(host, "cat", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			const state = "01"
			if f := strings.Fields(line); len(f) > 6 && f[3] == state {
				list = append(list, f)
			}
		}
	}
	return list
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
