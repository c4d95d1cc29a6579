package core

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/graph"
	"hccl.dev/hccl/internal/cpuset"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/wire"
)

// unknown stands for a NUMA node or cache that is not known, or that a thread is not bound to.
const unknown = -1

// standing tells where the calling thread runs: the NUMA node and the last-level cache (named by its first processor) of all
// processors that it may use, unknown where it may use those of several.
func standing() (numa, cache int32) {
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) != nil {
		return unknown, unknown
	}
	var cpus []int
	for c := range len(mask) * 64 {
		if mask.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return standingIn(os.DirFS("/sys/devices/system"), cpuset.Of(cpus...))
}

// standingIn reads the tree of /sys/devices/system.
func standingIn(sys fs.FS, mine cpuset.Set) (numa, cache int32) {
	numa, cache = unknown, unknown
	if mine.Empty() {
		return numa, cache
	}
	lists, _ := fs.Glob(sys, "node/node*/cpulist") // the pattern is good
	for _, name := range lists {
		var node int32
		if _, err := fmt.Sscanf(name, "node/node%d/cpulist", &node); err == nil && within(sys, name, mine) {
			numa = node
		}
	}
	first := mine.All()[0]
	levels, _ := fs.Glob(sys, fmt.Sprintf("cpu/cpu%d/cache/index*/shared_cpu_list", first))
	slices.Sort(levels) // the last level has the highest index
	if n := len(levels); n > 0 && within(sys, levels[n-1], mine) {
		if shared, err := readList(sys, levels[n-1]); err == nil {
			cache = int32(shared.All()[0])
		}
	}
	return numa, cache
}

func readList(sys fs.FS, name string) (cpuset.Set, error) {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return cpuset.Set{}, err
	}
	return cpuset.Parse(strings.TrimSpace(string(text)))
}

// within reports whether all of mine are in the list that a file holds.
func within(sys fs.FS, name string, mine cpuset.Set) bool {
	list, err := readList(sys, name)
	return err == nil && mine.And(list).Equal(mine)
}

// places are where the ranks run, as all of them know it. A host is a kernel and a network namespace of it: ranks of two of them
// meet over TCP.
func places(peers []wire.Peer) []graph.Place {
	hosts := map[place]int{}
	out := make([]graph.Place, len(peers))
	for r := range peers {
		h := place{peers[r].BootID, peers[r].NetNS}
		if _, ok := hosts[h]; !ok {
			hosts[h] = len(hosts)
		}
		out[r] = graph.Place{Host: hosts[h], NUMA: int(peers[r].NUMA), Cache: int(peers[r].Cache)}
	}
	return out
}

// arrange takes the order of rings and the number of hosts from the places of the ranks.
func (a *agreement) arrange(peers []wire.Peer) error {
	a.places, a.order = places(peers), nil
	a.setting.Hosts = graph.Hosts(a.places)
	ranks := graph.Order(a.places)
	if slices.IsSorted(ranks) {
		return nil // the order of numbers needs no table
	}
	order, err := proto.NewOrder(ranks)
	a.order = order
	return err
}

// around says how the ranks are placed, for a person.
func (a *agreement) around() string {
	nodes, caches := map[graph.Place]bool{}, map[graph.Place]bool{}
	for _, p := range a.places {
		nodes[graph.Place{Host: p.Host, NUMA: p.NUMA}] = true
		caches[p] = true
	}
	order := "by number"
	if a.order != nil {
		order = fmt.Sprintf("in the order %s", brief(graph.Order(a.places)))
	}
	return fmt.Sprintf("%s, %s, %s; rings go %s", count(a.setting.Hosts, "host"), count(len(nodes), "NUMA node"),
		count(len(caches), "last-level cache"), order)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// brief is a list of ranks, cut where it is long.
func brief(ranks []int) string {
	const most = 32
	if len(ranks) <= most {
		return strings.Trim(fmt.Sprint(ranks), "[]")
	}
	return strings.Trim(fmt.Sprint(ranks[:most]), "[]") + fmt.Sprintf(" ... (%d ranks)", len(ranks))
}
