package main

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/cost/store"
	machine "hccl.dev/hccl/graph/detect"
	"hccl.dev/hccl/graph/sysfs"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/internal/cpuset"
	"hccl.dev/hccl/internal/params"
)

// seat is a processor for a rank on host memory, and where it is.
type seat struct {
	processor int
	cost.Rank
}

// seats deals ranks out to the last-level caches of the processors that this process may use, in turn. Without a number it is two ranks
// for each cache, so that there is a pair within each and between any two.
func seats(ranks int) []seat {
	root := os.DirFS("/")
	var caches [][]seat
	processors := allowed().All()
	for _, p := range processors {
		numa, cache := sysfs.Standing(root, cpuset.Of(p))
		s := seat{p, cost.Rank{NUMA: numa, Cache: cache}}
		k := slices.IndexFunc(caches, func(c []seat) bool { return c[0].Rank == s.Rank })
		if k < 0 {
			caches, k = append(caches, nil), len(caches)
		}
		caches[k] = append(caches[k], s)
	}
	if ranks == 0 {
		ranks = min(2*len(caches), mostRanks)
	}
	var all []seat
	for k := range ranks {
		if len(caches) == 0 { // the kernel does not say
			all = append(all, seat{-1, cost.Rank{NUMA: sysfs.Unknown, Cache: sysfs.Unknown}})
			continue
		}
		c := caches[k%len(caches)]
		all = append(all, c[k/len(caches)%len(c)])
	}
	return all
}

// allowed are the processors that the calling thread may use.
func allowed() cpuset.Set {
	var mask unix.CPUSet
	var all []int
	if unix.SchedGetaffinity(0, &mask) == nil {
		for p := range len(mask) * 64 {
			if mask.IsSet(p) {
				all = append(all, p)
			}
		}
	}
	return cpuset.Of(all...)
}

// sit binds the calling thread to a processor. Where that is refused the thread stays, and its place is found as it is.
func (s seat) sit() {
	if s.processor >= 0 {
		var mask unix.CPUSet
		mask.Set(s.processor)
		_ = unix.SchedSetaffinity(0, &mask)
	}
}

// hostTopology is the hash of this machine as the library sees it for ranks on host memory.
func hostTopology() string {
	found := machine.Load(machine.Settings{File: params.Look().TopoFile})
	return cost.Hash(topo.Build(found.Machine))
}

// keptCosts is where measures are kept.
func keptCosts() store.Where { return store.Kept(params.Look().CostFile, params.CacheFolder()) }
