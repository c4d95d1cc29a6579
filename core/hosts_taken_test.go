package core

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/testkit/netns"
)

// Other programs of a host connect to where ranks of another one listen, from all ports that the host has left. The kernel gives none of
// them the port of a connection between ranks, which would end that.
func TestPortsOfConnectionsAreTheirOwn(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip(err)
	}
	l := hosts(t, 2)
	l.Rail()
	for h := range 2 {
		if out, err := l.Command(h, "sysctl", "-qw", "net.ipv4.ip_local_port_range=40000 40063").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	ranks := onHosts(t, l, []int{0, 1}, 1000)
	const times = 5
	for range 2 {
		tell(ranks, times)
		finish(t, ranks, 0, times)
		for h := range 2 {
			for _, port := range listening(t, l, h) {
				script := fmt.Sprintf("for k in {1..100}; do exec 9<>/dev/tcp/%s/%d; done", l.Address(h, 0), port)
				_ = l.Command(1-h, "bash", "-c", script).Run() // it ends where no port is left
			}
		}
	}
	disperse(t, ranks)
}

// listening are the ports at which anybody listens on a host.
func listening(t *testing.T, l *netns.Lab, host int) (ports []uint64) {
	t.Helper()
	out, err := l.Command(host, "cat", "/proc/net/tcp", "/proc/net/tcp6").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		const listens = "0A"
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != listens {
			continue
		}
		port, err := strconv.ParseUint(f[1][strings.LastIndexByte(f[1], ':')+1:], 16, 16)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, port)
	}
	return ports
}
