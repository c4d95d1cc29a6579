// Package netns makes hosts out of network namespaces, for tests of what happens between hosts: joined by rails, with faults and byte
// counters. It drives iproute2's ip and tc, needs root, and skips a test with the reason where that is lacking. Tests of Go packages
// call it; what it makes goes with the test.
//
//	host 0  e0 10.40.0.1/24 ──cable── p0_0 ┐          rail k is a bridge in a namespace of its own, with one cable to
//	        e1 10.41.0.1/24 ──cable── p0_1 ┼ br0, br1  each host: its end there is called ek, the far one p<host>_<k>
//	host 1  e0 10.40.0.2/24 ──cable── p1_0 ┘
package netns

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

const firstNet = 40 // rail k is 10.(firstNet+k).0.0/24

var labs atomic.Int32 // of this process, for names

// Lab is a set of hosts.
type Lab struct {
	t     testing.TB
	name  string
	hosts int
	rails int
}

// New makes hosts that have loopback and nothing else.
func New(t testing.TB, hosts int) *Lab {
	t.Helper()
	l := &Lab{t: t, name: fmt.Sprintf("hk%dx%d", os.Getpid(), labs.Add(1)), hosts: hosts}
	if why := lacking(l.name + "probe"); why != "" {
		t.Skipf("no hosts can be made of network namespaces: %s", why)
	}
	t.Cleanup(l.remove)
	for _, ns := range l.all() {
		l.ip("netns", "add", ns)
		l.ip("-n", ns, "link", "set", "lo", "up")
	}
	return l
}

// lacking says what is missing here to make a namespace.
func lacking(probe string) string {
	if os.Geteuid() != 0 {
		return "needs root"
	}
	for _, tool := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "needs " + tool + " of iproute2"
		}
	}
	if out, err := exec.Command("ip", "netns", "add", probe).CombinedOutput(); err != nil {
		return strings.TrimSpace(string(out))
	}
	if out, err := exec.Command("ip", "netns", "del", probe).CombinedOutput(); err != nil {
		return strings.TrimSpace(string(out))
	}
	return ""
}

func (l *Lab) all() []string {
	list := []string{l.name + "s"}
	for h := range l.hosts {
		list = append(list, l.Host(h))
	}
	return list
}

func (l *Lab) remove() {
	for _, ns := range l.all() {
		_ = exec.Command("ip", "netns", "del", ns).Run() // what was not made yet is not there
	}
}

// Host is the name of a host's namespace.
func (l *Lab) Host(h int) string { return l.name + "h" + strconv.Itoa(h) }

// Switch is the name of the namespace that holds the bridges.
func (l *Lab) Switch() string { return l.name + "s" }

// Address is that of a host on a rail.
func (l *Lab) Address(host, rail int) string { return fmt.Sprintf("10.%d.0.%d", firstNet+rail, host+1) }

// Rail adds a bridge with a cable to each host and returns its number.
func (l *Lab) Rail() int {
	l.t.Helper()
	k := l.rails
	l.rails++
	bridge := "br" + strconv.Itoa(k)
	l.ip("-n", l.Switch(), "link", "add", bridge, "type", "bridge")
	l.ip("-n", l.Switch(), "link", "set", bridge, "up")
	for h := range l.hosts {
		l.Cable(h, k)
	}
	return k
}

// Cable joins a host to a rail.
func (l *Lab) Cable(host, rail int) {
	l.t.Helper()
	ns, device, port := l.Host(host), Device(rail), l.port(host, rail)
	l.ip("-n", ns, "link", "add", device, "type", "veth", "peer", "name", port, "netns", l.Switch())
	l.ip("-n", l.Switch(), "link", "set", port, "master", "br"+strconv.Itoa(rail), "up")
	l.ip("-n", ns, "addr", "add", l.Address(host, rail)+"/24", "dev", device, "nodad")
	l.ip("-n", ns, "link", "set", device, "up")
}

// Readdress gives a host's end of a rail an address and prefix in place of those that it has.
func (l *Lab) Readdress(host, rail int, prefix string) {
	l.t.Helper()
	l.ip("-n", l.Host(host), "addr", "flush", "dev", Device(rail))
	l.ip("-n", l.Host(host), "addr", "add", prefix, "dev", Device(rail), "nodad")
}

// Device is a host's end of a rail.
func Device(rail int) string { return "e" + strconv.Itoa(rail) }

func (l *Lab) port(host, rail int) string { return fmt.Sprintf("p%d_%d", host, rail) }

// Alone is how many interfaces of a host's decoys are cables to nowhere.
const Alone = 8

// Decoys gives each host what real ones have beside their networks: the same bridge with the same address everywhere, cables to nowhere,
// every other one with an address on a network that all hosts seem to be on, and an interface that is down.
func (l *Lab) Decoys() {
	l.t.Helper()
	for h := range l.hosts {
		batch := []string{"link add docker0 type bridge", "addr add 172.17.0.1/16 dev docker0", "link set docker0 up",
			"link add down0 type veth peer name fardown0", fmt.Sprintf("addr add 10.98.0.%d/24 dev down0", h+1)}
		for k := range Alone {
			address := fmt.Sprintf("10.%d.%d.1/24", 90+k, h)
			if k%2 == 1 {
				address = fmt.Sprintf("10.%d.0.%d/24", 90+k, h+1)
			}
			batch = append(batch, fmt.Sprintf("link add alone%d type veth peer name far%d", k, k), fmt.Sprintf("link set far%d up", k),
				fmt.Sprintf("addr add %s dev alone%d", address, k), fmt.Sprintf("link set alone%d up", k))
		}
		cmd := exec.Command("ip", "-n", l.Host(h), "-batch", "-")
		cmd.Stdin = strings.NewReader(strings.Join(batch, "\n"))
		if out, err := cmd.CombinedOutput(); err != nil {
			l.t.Fatalf("decoys: %v\n%s", err, out)
		}
	}
}

// Shape bounds both directions of a host's cable, in Mbit/s.
func (l *Lab) Shape(host, rail, mbit int) {
	l.t.Helper()
	for _, end := range [][2]string{{l.Host(host), Device(rail)}, {l.Switch(), l.port(host, rail)}} {
		l.run("tc", "-n", end[0], "qdisc", "replace", "dev", end[1], "root", "tbf", "rate", fmt.Sprint(mbit, "mbit"), "burst", "64kb",
			"latency", "30ms")
	}
}

// Link sets the host's own end of a cable up or down: the host knows.
func (l *Lab) Link(host, rail int, up bool) {
	l.t.Helper()
	l.ip("-n", l.Host(host), "link", "set", Device(rail), state(up))
}

// Silence takes a cable off its bridge, or puts it back: nobody is told.
func (l *Lab) Silence(host, rail int, quiet bool) {
	l.t.Helper()
	words := []string{"-n", l.Switch(), "link", "set", l.port(host, rail), "nomaster"}
	if !quiet {
		words = append(words[:5], "master", "br"+strconv.Itoa(rail))
	}
	l.ip(words...)
}

func state(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

// Sent is how many bytes a host has sent by a device.
func (l *Lab) Sent(host int, device string) uint64 {
	l.t.Helper()
	out := l.ip("netns", "exec", l.Host(host), "cat", "/proc/net/dev")
	for line := range strings.Lines(out) {
		name, rest, ok := strings.Cut(line, ":")
		if fields := strings.Fields(rest); ok && strings.TrimSpace(name) == device && len(fields) > 8 {
			n, err := strconv.ParseUint(fields[8], 10, 64)
			if err != nil {
				l.t.Fatal(err)
			}
			return n
		}
	}
	l.t.Fatalf("host %d has no device %s:\n%s", host, device, out)
	return 0
}

// Router has the switch route between the rails, for hosts that do without one of them.
func (l *Lab) Router() {
	l.t.Helper()
	l.ip("netns", "exec", l.Switch(), "sysctl", "-qw", "net.ipv4.ip_forward=1")
	for k := range l.rails {
		l.ip("-n", l.Switch(), "addr", "add", l.Address(253, k)+"/24", "dev", "br"+strconv.Itoa(k))
	}
}

// LoseLarge has the switch drop packets of more than 1500 bytes on a rail by which hosts send some of 9000.
func (l *Lab) LoseLarge(rail int) {
	l.t.Helper()
	for h := range l.hosts {
		for _, end := range [][2]string{{l.Host(h), Device(rail)}, {l.Switch(), l.port(h, rail)}} {
			mtu := "9000"
			if h == 1 && end[0] == l.Switch() {
				mtu = "1500"
			}
			l.ip("-n", end[0], "link", "set", end[1], "mtu", mtu, "gso_max_segs", "1") // larger ones would pass in one piece
		}
	}
}

// IP runs iproute2's ip on a host.
func (l *Lab) IP(host int, words string) {
	l.t.Helper()
	l.ip(append([]string{"-n", l.Host(host)}, strings.Fields(words)...)...)
}

// IPSwitch runs it on the switch.
func (l *Lab) IPSwitch(words string) {
	l.t.Helper()
	l.ip(append([]string{"-n", l.Switch()}, strings.Fields(words)...)...)
}

// Command is a program to be run on a host.
func (l *Lab) Command(host int, program string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", l.Host(host), program}, args...)...)
}

func (l *Lab) ip(words ...string) string {
	l.t.Helper()
	return l.run("ip", words...)
}

func (l *Lab) run(tool string, words ...string) string {
	l.t.Helper()
	out, err := exec.Command(tool, words...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s %s: %v: %s", tool, strings.Join(words, " "), err, out)
	}
	return string(out)
}
