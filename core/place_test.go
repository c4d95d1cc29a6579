package core

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"hccl.dev/hccl/graph"
	"hccl.dev/hccl/internal/cpuset"
	"hccl.dev/hccl/proto/wire"
)

func TestStanding(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }
	two := fstest.MapFS{
		"node/node0/cpulist": file("0-3,8-11"), "node/node1/cpulist": file("4-7,12-15"),
		"cpu/cpu4/cache/index0/shared_cpu_list": file("4"), "cpu/cpu4/cache/index3/shared_cpu_list": file("4-5,12-13"),
		"cpu/cpu0/cache/index3/shared_cpu_list": file("0-1"), "cpu/cpu2/cache/index3/shared_cpu_list": file("broken"),
	}
	for _, c := range []struct {
		name        string
		sys         fstest.MapFS
		mine        string
		numa, cache int32
	}{
		{"bound to one core", two, "4", 1, 4},
		{"bound to a cache", two, "4-5,12", 1, 4},
		{"to a NUMA node", two, "0-3,8-11", 0, unknown},
		{"to nothing", two, "0-15", unknown, unknown},
		{"to a processor whose cache cannot be read", two, "2", 0, unknown},
		{"a kernel that tells nothing", fstest.MapFS{}, "0", unknown, unknown},
		{"no processor", two, "", unknown, unknown},
	} {
		mine := cpuset.Set{}
		if c.mine != "" {
			var err error
			if mine, err = cpuset.Parse(c.mine); err != nil {
				t.Fatal(err)
			}
		}
		if numa, cache := standingIn(c.sys, mine); numa != c.numa || cache != c.cache {
			t.Errorf("%s: node %d, cache %d; want %d, %d", c.name, numa, cache, c.numa, c.cache)
		}
	}
	if numa, cache := standing(); numa < unknown || cache < unknown {
		t.Errorf("this thread: node %d, cache %d", numa, cache)
	}
}

func TestArrange(t *testing.T) {
	peer := func(boot string, ns uint64, numa, cache int32) wire.Peer {
		return wire.Peer{BootID: boot, NetNS: ns, NUMA: numa, Cache: cache}
	}
	var a agreement
	// Dealt out to two hosts in turn, one of which has two namespaces.
	err := a.arrange([]wire.Peer{peer("x", 1, 0, 0), peer("y", 1, 0, 0), peer("x", 1, 1, 4), peer("y", 2, 0, 0), peer("x", 1, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if a.setting.Hosts != 3 || a.order == nil || !slices.Equal(graph.Order(a.places), []int{0, 4, 2, 1, 3}) {
		t.Errorf("%d hosts, order %v", a.setting.Hosts, graph.Order(a.places))
	}
	if text := a.around(); !strings.Contains(text, "3 hosts, 4 NUMA nodes") || !strings.Contains(text, "0 4 2 1 3") {
		t.Error(text)
	}
	a = agreement{}
	if err := a.arrange([]wire.Peer{peer("x", 1, -1, -1), peer("x", 1, -1, -1)}); err != nil || a.order != nil || a.setting.Hosts != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}
