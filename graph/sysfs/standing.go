package sysfs

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"hccl.dev/hccl/internal/cpuset"
)

// Unknown stands for a NUMA node or cache that is not known, or that a thread is not bound to.
const Unknown = -1

// Standing tells where a thread runs that may use these processors: the NUMA node and the last-level cache (named by its first
// processor) that have all of them, Unknown where it may use those of several.
func Standing(root fs.FS, mine cpuset.Set) (numa, cache int) {
	numa, cache = Unknown, Unknown
	if mine.Empty() {
		return numa, cache
	}
	const system = "sys/devices/system/"
	lists, _ := fs.Glob(root, system+"node/node*/cpulist") // the pattern is good
	for _, name := range lists {
		var node int
		if _, err := fmt.Sscanf(name, system+"node/node%d/cpulist", &node); err == nil && within(root, name, mine) {
			numa = node
		}
	}
	levels, _ := fs.Glob(root, fmt.Sprintf(system+"cpu/cpu%d/cache/index*/shared_cpu_list", mine.All()[0]))
	slices.Sort(levels) // the last level has the highest index
	if n := len(levels); n > 0 && within(root, levels[n-1], mine) {
		if shared, err := readList(root, levels[n-1]); err == nil {
			cache = shared.All()[0]
		}
	}
	return numa, cache
}

func readList(root fs.FS, name string) (cpuset.Set, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return cpuset.Set{}, err
	}
	return cpuset.Parse(strings.TrimSpace(string(text)))
}

// within reports whether all of mine are in the list that a file holds.
func within(root fs.FS, name string, mine cpuset.Set) bool {
	list, err := readList(root, name)
	return err == nil && mine.And(list).Equal(mine)
}
