package cases

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/testkit/netns"
)

// Interfaces and networks as users have them. Each case is a lab of two hosts that something is wrong with; right sums must come, and
// payload by the right wires alone.

const (
	networkCount  = 1 << 19 // elements of an all-reduce
	networkRounds = 4
	networkBytes  = 4 * networkCount * networkRounds // that each host sends at least
)

// network is a case.
type network struct {
	name  string
	rails int
	setup func(l *netns.Lab)
	env   string   // of both hosts, as VARIABLE=VALUE
	hosts []string // settings of one host, likewise
	ranks int      // 0: one on each host
	use   []string // the devices that payload is to go by, of host 0; nil: any
	idle  []string // those that it must not go by
}

var networks = []network{
	{name: "C01 one bridge address on both hosts, made first", rails: 0, use: []string{"e0"}, idle: []string{"docker0", "alone0"},
		setup: func(l *netns.Lab) { l.Decoys(); l.Rail() }},
	{name: "C01 one bridge address on both hosts, made last", rails: 1, use: []string{"e0"}, idle: []string{"docker0", "alone0"},
		setup: func(l *netns.Lab) { l.Decoys() }},
	{name: "C03 an exclusion alone", rails: 1, env: "NCCL_SOCKET_IFNAME=^docker0", use: []string{"e0"}},
	{name: "C04 a prefix", rails: 1, setup: subInterface, env: "NCCL_SOCKET_IFNAME=e0", use: []string{"e0"}, idle: []string{"e0.9"}},
	{name: "C04 an exact name", rails: 1, setup: subInterface, env: "NCCL_SOCKET_IFNAME==e0", use: []string{"e0"}, idle: []string{"e0.9"}},
	{name: "C04 all but one", rails: 1, setup: subInterface, env: "NCCL_SOCKET_IFNAME=^e0.9", use: []string{"e0"}, idle: []string{"e0.9"}},
	{name: "C07 other names on other hosts", rails: 1, env: "NCCL_SOCKET_IFNAME=eno1,enp6s0", use: []string{"eno1"},
		setup: func(l *netns.Lab) { rename(l, 0, "eno1"); rename(l, 1, "enp6s0") }},
	{name: "C09 IPv6 alone", rails: 1, use: []string{"e0"}, setup: func(l *netns.Lab) { six(l, 0, 1) }},
	{name: "C09 link-local addresses elsewhere", rails: 2, use: []string{"e0"}, idle: []string{"e1"}, setup: func(l *netns.Lab) {
		for h := range 2 {
			l.IP(h, "addr flush dev e1 scope global")
		}
	}},
	{name: "C09 IPv4 and IPv6 here, IPv6 there", rails: 1, use: []string{"e0"}, setup: func(l *netns.Lab) {
		six(l, 1)
		l.IP(0, "addr add fd00:1::1/64 dev e0 nodad")
	}},
	{name: "C10 the address is on lo", rails: 2, setup: addressOnLoopback, idle: []string{"lo"}},
	{name: "C10 lo is named", rails: 2, setup: addressOnLoopback, env: "NCCL_SOCKET_IFNAME=lo", idle: []string{"lo"}},
	{name: "C13 interfaces in another order there", rails: 2, ranks: 4, use: []string{"e0", "e1"}, setup: func(l *netns.Lab) {
		l.IP(1, "link del e0") // it comes last there then
		l.Cable(1, 0)
		for rail := range 2 { // a wire that is faster than the processors could do with one
			l.Shape(0, rail, 400)
			l.Shape(1, rail, 400)
		}
	}},
	{name: "C14 an interface fewer there", rails: 2, use: []string{"e0"}, idle: []string{"e1"},
		setup: func(l *netns.Lab) { l.Link(1, 1, false) }},
	{name: "C14 an interface fewer is allowed there", rails: 2, hosts: []string{"", "NCCL_SOCKET_IFNAME==e0"}, use: []string{"e0"},
		idle: []string{"e1"}},
}

func subInterface(l *netns.Lab) {
	for h := range 2 {
		l.IP(h, "link add e0.9 type veth peer name far9")
		l.IP(h, fmt.Sprintf("addr add 10.6%d.0.1/24 dev e0.9", 6+h))
		l.IP(h, "link set e0.9 up")
	}
}

func rename(l *netns.Lab, host int, name string) {
	l.Link(host, 0, false)
	l.IP(host, "link set e0 name "+name)
	l.IP(host, "link set "+name+" up")
}

// six leaves hosts nothing but an IPv6 address on rail 0.
func six(l *netns.Lab, hosts ...int) {
	for _, h := range hosts {
		l.IP(h, "addr flush dev e0 scope global")
		l.IP(h, fmt.Sprintf("addr add fd00:1::%d/64 dev e0 nodad", h+1))
	}
}

// addressOnLoopback has the wires do without addresses of their own that mean anything elsewhere.
func addressOnLoopback(l *netns.Lab) {
	for h := range 2 {
		for k := range 2 {
			l.Readdress(h, k, fmt.Sprintf("169.254.%d.%d/30", k, h+1))
		}
		l.IP(h, fmt.Sprintf("addr add 10.50.0.%d/32 dev lo", h+1))
		l.IP(h, fmt.Sprintf("route add 10.50.0.%d/32 src 10.50.0.%d nexthop via 169.254.0.%d nexthop via 169.254.1.%d", 2-h, h+1, 2-h, 2-h))
	}
}

func TestNetworks(t *testing.T) {
	needsRoot(t)
	for _, c := range networks {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
}

func (c *network) run(t *testing.T) {
	l := c.lab(t)
	ranks := max(c.ranks, 2)
	args := []string{build(t, "case_network"), "sums", fmt.Sprint(networkCount), fmt.Sprint(networkRounds), fmt.Sprint(ranks)}
	run(t, c.settings(), append(args, c.words(l)...)...)
	carried := uint64(0)
	for _, d := range c.use {
		n := l.Sent(0, d)
		carried += n
		if n < 1<<20 {
			t.Errorf("%s carried %d bytes", d, n)
		}
	}
	if c.use != nil && carried < networkBytes {
		t.Errorf("%v carried %d bytes, and at least %d were to be sent", c.use, carried, networkBytes)
	}
	for _, d := range c.idle {
		if n := l.Sent(0, d); n > 128<<10 {
			t.Errorf("%s carried %d bytes", d, n)
		}
	}
}

func (c *network) lab(t *testing.T) *netns.Lab {
	l := netns.New(t, 2)
	for range c.rails {
		l.Rail()
	}
	if c.setup != nil {
		c.setup(l)
	}
	return l
}

func (c *network) settings() []string { return strings.Fields(c.env) }

// words name the hosts to case_network.
func (c *network) words(l *netns.Lab) (words []string) {
	for h := range 2 {
		word := l.Host(h)
		if c.hosts != nil && c.hosts[h] != "" {
			word += ";" + c.hosts[h]
		}
		words = append(words, word)
	}
	return words
}

// C28: hosts with different numbers of ranks, which are numbered by host, in turn, and in no order.
func TestUnevenHosts(t *testing.T) {
	needsRoot(t)
	for name, on := range map[string][]int{
		"C28 seven and eight":          {0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1},
		"C28 five and one, in turn":    {0, 1, 1, 1, 1, 1},
		"C28 one, two and four, mixed": {2, 1, 2, 0, 2, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := netns.New(t, slices.Max(on)+1)
			l.Rail()
			args := []string{build(t, "case_network"), "ops", "10007", "1", fmt.Sprint(len(on))}
			for _, h := range on {
				args = append(args, l.Host(h))
			}
			run(t, nil, args...)
		})
	}
}

// C23: a router lets through a range of ports alone, and answers nothing else.
func TestPortRange(t *testing.T) {
	needsRoot(t)
	for _, c := range []struct {
		name, env, mode, arg string
	}{
		{"C23 the ports of the range", "HCCL_PORT_RANGE=42000-42031", "ops", "1"},
		{"C23 other ports", "HCCL_INIT_TIMEOUT=3", "unmet", "HCCL_PORT_RANGE"},
		{"C23 a range that is too small", "HCCL_PORT_RANGE=42000-42001", "unmet", "widen the range"}, // long before the limit
	} {
		t.Run(c.name, func(t *testing.T) {
			n := network{rails: 2, env: c.env, setup: (*netns.Lab).Router}
			l := n.lab(t)
			for h := range 2 { // each host is on one rail
				l.Link(h, 1-h, false)
				l.IP(h, "route add default via "+l.Address(253, h))
			}
			l.IPSwitch("rule add pref 5 ipproto tcp dport 42000-42031 lookup main")
			l.IPSwitch("rule add pref 6 ipproto tcp sport 42000-42031 lookup main")
			l.IPSwitch("rule add pref 7 ipproto tcp blackhole")
			run(t, n.settings(), append([]string{build(t, "case_network"), c.mode, "1009", c.arg, "6"}, n.words(l)...)...)
		})
	}
}

// The network is gone for a while, when ranks meet or later: nothing fails. Gone for good: an error within the limit, on all ranks.
func TestNetworkIsGone(t *testing.T) {
	needsRoot(t)
	for _, c := range []struct{ name, mode, before, during, after, env string }{
		{"C16 no route when ranks meet", "sums", "ip route add unreachable 10.40.0.2", "", "ip route del unreachable 10.40.0.2", ""},
		{"C16 silence when ranks meet", "sums", "ip route add blackhole 10.40.0.2", "", "ip route del blackhole 10.40.0.2", ""},
		{"C16 a link that goes and comes", "fault", "", "ip link set e0 down", "ip link set e0 up", ""},
		{"C16 silence for a while", "fault", "", "ip -n @ link set p0_0 nomaster", "ip -n @ link set p0_0 master br0", ""},
		{"C16 a link that goes", "lost", "", "ip link set e0 down", "", "HCCL_TIMEOUT=1"},
		{"C16 silence", "lost", "", "ip -n @ link set p0_0 nomaster", "", "HCCL_TIMEOUT=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := network{rails: 1, env: c.env}
			l := n.lab(t)
			shell := func(first string) string {
				if c.after != "" {
					first += "; (sleep 1; " + c.after + ") >/dev/null 2>&1 &"
				}
				return strings.ReplaceAll(first, "@", l.Switch())
			}
			command := "2"
			if c.during != "" {
				command = shell(c.during)
			} else if err := l.Command(0, "sh", "-c", shell(c.before)).Run(); err != nil {
				t.Fatal(err)
			}
			run(t, n.settings(), append([]string{build(t, "case_network"), c.mode, fmt.Sprint(networkCount), command, "2"}, n.words(l)...)...)
		})
	}
}
