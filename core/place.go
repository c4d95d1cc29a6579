package core

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/graph"
	"hccl.dev/hccl/graph/arrange"
	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/sysfs"
	"hccl.dev/hccl/internal/cpuset"
	"hccl.dev/hccl/internal/plural"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/wire"
)

// unknown stands for a NUMA node or cache that is not known, or that a thread is not bound to.
const unknown = sysfs.Unknown

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
	at, last := sysfs.Standing(os.DirFS("/"), cpuset.Of(cpus...))
	return int32(at), int32(last)
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

// arrange merges what the ranks have told of themselves into one topology.
func (a *agreement) arrange(peers []wire.Peer) *arrange.Arrangement {
	a.places, a.order, a.devices = places(peers), nil, make([]int, len(peers))
	a.setting.Hosts = graph.Hosts(a.places)
	if a.scope == cost.Nothing {
		a.setting.Hosts = 1
	}
	ranks, machines := make([]arrange.Rank, len(peers)), make(arrange.Machines, graph.Hosts(a.places))
	for r := range peers {
		ranks[r] = told(a.places[r], &peers[r])
		if h := a.places[r].Host; machines[h] == nil {
			machines[h] = a.hosts[peers[r].Described]
		}
	}
	all := arrange.New(ranks, machines, a.scope)
	for r := range peers {
		a.devices[r] = all.Device(r)
	}
	return all
}

// use takes the orders of rings.
func (a *agreement) use(found arrange.Result) (err error) {
	a.found = found
	a.setting.Rings = len(found.Orders)
	if len(found.Orders) == 1 && slices.IsSorted(found.Orders[0]) {
		return nil // the order of numbers needs no table
	}
	a.order, err = proto.NewOrder(found.Orders...)
	return err
}

// told is a rank as package arrange takes it.
func told(at graph.Place, p *wire.Peer) arrange.Rank {
	r := arrange.Rank{Place: at, Switch: p.Switch, Group: int(p.Pod), Device: int(p.Device), WhyNot: p.WhyNot}
	for _, v := range p.Rates {
		r.Rates = append(r.Rates, arrange.Rate{To: v.To, BytesPerSecond: v.Rate})
	}
	for _, ring := range p.Rings {
		asked := arrange.Ring{Line: int(ring.Line)}
		for _, d := range ring.Devs {
			asked.Devs = append(asked.Devs, int(d))
		}
		r.Rings = append(r.Rings, asked)
	}
	return r
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
		order = "in the order " + few(a.orders())
	}
	return fmt.Sprintf("%s, %s, %s; rings go %s, by %s", plural.Of(graph.Hosts(a.places), "host"), plural.Of(len(nodes), "NUMA node"),
		plural.Of(len(caches), "last-level cache"), order, a.found.By)
}

// orders are the orders of rings, each once, with the number of its channels where it has several.
func (a *agreement) orders() (texts []string) {
	var each []string
	times := map[string]int{}
	for _, ranks := range a.found.Orders {
		text := brief(ranks)
		if times[text]++; times[text] == 1 {
			each = append(each, text)
		}
	}
	for _, text := range each {
		if n := times[text]; n > 1 {
			text += fmt.Sprintf(" (%d times)", n)
		}
		texts = append(texts, text)
	}
	return texts
}

// brief is a list of ranks, cut where it is long.
func brief(ranks []int) string {
	const most = 32
	if len(ranks) <= most {
		return strings.Trim(fmt.Sprint(ranks), "[]")
	}
	return strings.Trim(fmt.Sprint(ranks[:most]), "[]") + fmt.Sprintf(" ... (%d ranks)", len(ranks))
}
