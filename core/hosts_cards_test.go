package core

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hccl.dev/hccl/internal/testkit/netns"
)

// What ranks on hosts of their own send by which network card, and how much.

// Data keep to the interfaces that the user names, also where another one reaches the same network and rails could be more.
func TestNamedInterfaces(t *testing.T) {
	for rule, want := range map[string][2]bool{"=e1": {false, true}, "^e1": {true, false}, "e0,e1": {true, true}} {
		t.Run(rule, func(t *testing.T) {
			l := hosts(t, 2)
			l.Rail()
			l.Rail()
			for h := range 2 {
				l.Shape(h, 0, 300)
				l.Shape(h, 1, 300)
			}
			ranks := onHosts(t, l, []int{0, 1}, 1<<20, "NCCL_SOCKET_IFNAME="+rule)
			tell(ranks, 6)
			finish(t, ranks, 0, 6)
			disperse(t, ranks)
			for k, used := range want {
				if n := l.Sent(0, netns.Device(k)); (n > 1<<20) != used || !used && n > 128<<10 {
					t.Errorf("e%d carried %d bytes, to be used: %v", k, n, used)
				}
			}
		})
	}
}

// Hosts that name interfaces which do not lead to each other are joined all the same, and told by what.
func TestNamedInterfacesThatDoNotMeet(t *testing.T) {
	l := hosts(t, 2)
	l.Rail()
	l.Rail()
	dir := t.TempDir()
	ranks := onDifferentHosts(t, l, []int{0, 1}, 1000, func(h int) []string {
		return []string{"NCCL_SOCKET_IFNAME==" + netns.Device(h), "NCCL_DEBUG=WARN", "NCCL_DEBUG_FILE=" + filepath.Join(dir, strconv.Itoa(h))}
	})
	tell(ranks, 1)
	finish(t, ranks, 0, 1)
	disperse(t, ranks)
	var said strings.Builder
	for h := range 2 {
		text, _ := os.ReadFile(filepath.Join(dir, strconv.Itoa(h)))
		said.Write(text)
	}
	if !strings.Contains(said.String(), "compare NCCL_SOCKET_IFNAME on both hosts") {
		t.Errorf("nobody is told that data go by an interface that is not named: %q", said.String())
	}
}

// All ranks of a host together keep the bound of its interface, whoever of them has how much to send and by how many sockets.
func TestRateOfAHost(t *testing.T) {
	l := hosts(t, 2)
	rail := l.Rail()
	const count, times, mbit = 1 << 20, 3, 200
	ranks := onHosts(t, l, []int{0, 0, 1, 1}, count, "HCCL_NET_RATE="+strconv.Itoa(mbit), "NCCL_SOCKET_NTHREADS=2")
	before, began := l.Sent(0, netns.Device(rail)), time.Now()
	tell(ranks, times)
	finish(t, ranks, 0, times)
	sent, took := l.Sent(0, netns.Device(rail))-before, time.Since(began)
	disperse(t, ranks)
	// What the sockets hold at the end has left, and at first each rank may do what one alone may.
	if most := mbit * 1e6 / 8 * (took.Seconds()*1.1 + 0.2); float64(sent) > most {
		t.Errorf("%d bytes in %v, at most %.0f may be at %d Mbit/s", sent, took, most, mbit)
	}
}

// overlap gives two rails of a lab one wide network, the second rail's addresses before or behind the first one's.
func overlap(l *netns.Lab, order ...int) {
	for h := range 2 {
		for _, k := range order {
			l.Readdress(h, k, fmt.Sprintf("10.60.%d.%d/20", k, h+1))
		}
	}
}

// Two interfaces in one wide network: data keep to the one that is named, and use both where none is, whichever the routes lead by.
func TestOverlappingNetworks(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		for rule, least := range map[string][2]uint64{"=e0": {4 << 20, 0}, "": {1 << 20, 1 << 20}} {
			t.Run(fmt.Sprint(order, rule), func(t *testing.T) {
				l := hosts(t, 2)
				l.Rail()
				l.Rail()
				overlap(l, order...)
				for h := range 2 {
					l.Shape(h, 0, 300)
					l.Shape(h, 1, 300)
				}
				ranks := onHosts(t, l, []int{0, 1}, 1<<20, "NCCL_SOCKET_IFNAME="+rule)
				tell(ranks, 4)
				finish(t, ranks, 0, 4)
				disperse(t, ranks)
				for k, want := range least {
					if n := l.Sent(0, netns.Device(k)); n < want || want == 0 && n > 64<<10 {
						t.Errorf("e%d carried %d bytes, wanted at least %d, or nearly none", k, n, want)
					}
				}
			})
		}
	}
}
