package core

import (
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl/graph"
	"hccl.dev/hccl/proto/wire"
)

func TestStanding(t *testing.T) {
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
	err := a.use(a.arrange([]wire.Peer{peer("x", 1, 0, 0), peer("y", 1, 0, 0), peer("x", 1, 1, 4), peer("y", 2, 0, 0),
		peer("x", 1, 0, 0)}).Near())
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
	one := []wire.Peer{peer("x", 1, -1, -1), peer("x", 1, -1, -1)}
	if err := a.use(a.arrange(one).Near()); err != nil || a.order != nil || a.setting.Hosts != 1 {
		t.Errorf("%+v, %v", a, err)
	}
}
