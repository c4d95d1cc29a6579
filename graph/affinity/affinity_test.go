package affinity_test

import (
	"strings"
	"testing"

	"hccl.dev/hccl/graph/affinity"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/cpuset"
)

// machine has GPU 0 and port ib0 on the first of two NUMA nodes, GPU 1 and ib1 on the second, and a port that is nowhere.
func machine() *topo.Machine {
	node := func(n int, mask, bus string) *topo.CPU {
		port := &topo.Port{Name: "mlx5_" + bus[:1], Extra: []topo.Attr{{Name: "netdev", Value: "ib" + bus[:1]}}}
		return &topo.CPU{NUMA: n, Affinity: mask, Devices: []*topo.Device{
			{BusID: bus + ":00.0", GPUs: []*topo.GPU{{Number: n}}}, {BusID: bus + ":01.0", NIC: &topo.NIC{Ports: []*topo.Port{port}}}}}
	}
	m := &topo.Machine{CPUs: []*topo.CPU{node(0, "00ff00ff", "0"), node(1, "ff00ff00", "1")}}
	m.CPUs[0].Devices = append(m.CPUs[0].Devices, &topo.Device{NIC: &topo.NIC{Ports: []*topo.Port{{Name: "veth0"}}}})
	return m
}

func set(t *testing.T, list string) cpuset.Set {
	t.Helper()
	s, err := cpuset.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPlace(t *testing.T) {
	const all = "0-31"
	for _, c := range []struct {
		name          string
		gpu           int
		port          string
		mask          string
		ignore        bool
		proxy         string
		rank, threads string
		says          string
	}{
		{"GPU and port apart", 0, "mlx5_1", all, false, "", "0-7,16-23", "8-15,24-31", "the library's threads on processors 8-15,24-31 of 0-31"},
		{"GPU alone", 1, "", all, false, "", "8-15,24-31", "8-15,24-31", "by NUMA node 1 of GPU 1"},
		{"port by its interface", -1, "ib0", all, false, "", "", "0-7,16-23", "NUMA node 0 of port ib0"},
		{"neither", -1, "", all, false, "", "", "", "neither GPU nor card"},
		{"a GPU that is not there", 7, "", all, false, "", "", "", "neither GPU nor card"},
		{"a port that is not there", -1, "eth9", all, false, "", "", "", "the place of port eth9 is not known"},
		{"a port that is nowhere", -1, "veth0", all, false, "", "", "", "the place of port veth0 is not known"},
		{"pinned within the node", 0, "", "0-3", false, "", "", "", "stays on processors 0-3, which the process was given: all are of"},
		{"pinned across nodes", 0, "", "6-9", false, "", "6-7", "6-7", "on processors 6-7 of 6-9"},
		{"pinned elsewhere", 0, "ib0", "8-15", false, "", "", "", "none of them is among 0-7,16-23"},
		{"pinned elsewhere, ignored", 0, "ib1", "8-15", true, "", "0-7,16-23", "8-15,24-31", "whatever the process was given (8-15)"},
		{"pinned elsewhere, ignored, on the host", -1, "ib1", "0-3", true, "", "", "", "none of them is among 8-15,24-31"},
		{"proxy set", 0, "ib1", all, false, "2-3,40", "0-7,16-23", "2-3", "on processors 2-3 of 0-31 by NCCL_PROXY_CPUSET"},
		{"proxy set, pinned elsewhere", -1, "ib1", "0-1", false, "2-3", "", "", "none of them is among 2-3 of NCCL_PROXY_CPUSET"},
		{"proxy set, ignored", -1, "", "0-1", true, "2-3", "", "2-3", "whatever the process was given (0-1)"},
	} {
		got := affinity.Place(machine(), affinity.Rank{GPU: c.gpu, Port: c.port, Mask: set(t, c.mask), Ignore: c.ignore, Proxy: set(t, c.proxy)})
		if got.Rank.String() != c.rank || got.Threads.String() != c.threads || !strings.Contains(got.Why, c.says) {
			t.Errorf("%s: rank %q, threads %q, %q; want %q, %q, %q", c.name, got.Rank, got.Threads, got.Why, c.rank, c.threads, c.says)
		}
	}
}

func TestMemoryIsNearThePort(t *testing.T) {
	one := machine()
	one.CPUs = one.CPUs[:1]
	for _, c := range []struct {
		m    *topo.Machine
		port string
		want int
	}{{machine(), "ib0", 0}, {machine(), "mlx5_1", 1}, {machine(), "veth0", -1}, {machine(), "", -1}, {one, "ib0", -1}} {
		if got := affinity.Place(c.m, affinity.Rank{GPU: 0, Port: c.port, Mask: set(t, "0-31")}).Memory; got != c.want {
			t.Errorf("port %q of %d nodes: memory on node %d, want %d", c.port, len(c.m.CPUs), got, c.want)
		}
	}
}

// With one NUMA node, or one whose processors are not known, nothing moves; a set that is asked for still counts.
func TestNothingToChoose(t *testing.T) {
	one := machine()
	one.CPUs = one.CPUs[:1]
	bare := machine()
	bare.CPUs[1].Affinity = ""
	blind := machine()
	blind.CPUs = append(blind.CPUs, &topo.CPU{NUMA: 2, Affinity: "f,00000000"})
	blind.CPUs[1].NUMA = -1
	for says, m := range map[string]*topo.Machine{"there is one NUMA node": one, "one NUMA node": bare, "are not known": blind} {
		r := affinity.Rank{GPU: min(1, len(m.CPUs)-1), Mask: set(t, "0-31")}
		if got := affinity.Place(m, r); !got.Rank.Empty() || !got.Threads.Empty() || !strings.Contains(got.Why, says) {
			t.Errorf("rank %q, threads %q, %q, want %q", got.Rank, got.Threads, got.Why, says)
		}
		r.Proxy = set(t, "5")
		if got := affinity.Place(m, r); got.Threads.String() != "5" {
			t.Errorf("threads %q, want 5", got.Threads)
		}
	}
}

func TestNear(t *testing.T) {
	one := machine()
	one.CPUs = one.CPUs[:1]
	for _, c := range []struct {
		m     *topo.Machine
		ports string
		mask  string
		near  string // of each port, 1 if it is
	}{
		{machine(), "ib0 ib1", "0-3", "10"},
		{machine(), "ib1 veth0 ib0 mlx5_0", "16-23", "0011"},
		{machine(), "ib0 ib1", "8-15", "01"},
		{machine(), "ib0 ib1", "7-8", ""},
		{machine(), "ib0 ib1", "0-31", ""},
		{machine(), "ib0 mlx5_0", "0-3", ""},
		{machine(), "ib1 veth0", "0-3", ""},
		{machine(), "", "0-3", ""},
		{one, "ib0 ib1", "0-3", ""},
	} {
		near := ""
		for _, n := range affinity.Near(c.m, strings.Fields(c.ports), set(t, c.mask)) {
			near += map[bool]string{false: "0", true: "1"}[n]
		}
		if near != c.near {
			t.Errorf("%s by processors %s: %q, want %q", c.ports, c.mask, near, c.near)
		}
	}
}
