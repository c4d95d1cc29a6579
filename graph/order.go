package graph

import (
	"cmp"
	"slices"
)

// Place is where a rank runs. Equal numbers mean the same host, NUMA node of it, or last-level cache of that; -1 stands for "not
// known" and is a place like any other.
type Place struct{ Host, NUMA, Cache int }

// Order is the order of ranks around a plain ring: those of a host stand together, and within it those of a NUMA node, and within
// that those of a cache, so that the ring crosses each boundary once in each direction. Groups stand in the order of their lowest
// rank, ranks of a group by number: all ranks that know the same places find the same order.
func Order(places []Place) []int {
	type group struct{ host, numa, cache int } // the lowest rank of each
	lowest := map[Place]int{}
	first := func(p Place, r int) int {
		if _, ok := lowest[p]; !ok {
			lowest[p] = r
		}
		return lowest[p]
	}
	groups := make([]group, len(places))
	order := make([]int, len(places))
	const any = -2 // below the level that is asked for
	for r, p := range places {
		groups[r] = group{first(Place{p.Host, any, any}, r), first(Place{p.Host, p.NUMA, any}, r), first(p, r)}
		order[r] = r
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := groups[a], groups[b]
		return cmp.Or(cmp.Compare(x.host, y.host), cmp.Compare(x.numa, y.numa), cmp.Compare(x.cache, y.cache))
	})
	return order
}

// Hosts is how many hosts the places are on.
func Hosts(places []Place) int {
	seen := map[int]bool{}
	for _, p := range places {
		seen[p.Host] = true
	}
	return len(seen)
}
