package arrange

import (
	"math"
	"slices"

	"hccl.dev/hccl/graph/cost"
)

// near orders a host's ranks by what was measured between their places where all of it is known, else by the places.
//
// A ring is as slow as its slowest step, so of the tours that go from each place to the nearest one that is left, one from each start,
// the one counts whose worst step is the best, then whose sum is. With other hosts the tour does not close.
func (a *Arrangement) near(h *site) (rings [][]int, by string) {
	names, at := a.places(h)
	cells := a.cells(h, names, at)
	if cells == nil {
		return [][]int{h.ranks}, "their places"
	}
	order := tour(cells, len(a.hosts) == 1)
	var ring []int
	for _, p := range order {
		for _, r := range h.ranks {
			if at[r] == p {
				ring = append(ring, r)
			}
		}
	}
	return [][]int{ring}, "measured costs"
}

// places are the names of a host's places in the order of its ranks, and which of them each rank is at.
func (a *Arrangement) places(h *site) (names []string, at map[int]int) {
	at = map[int]int{}
	for _, r := range h.ranks {
		name := a.place(r)
		k := slices.Index(names, name)
		if k < 0 {
			k = len(names)
			names = append(names, name)
		}
		at[r] = k
	}
	return names, at
}

func (a *Arrangement) place(r int) string {
	return cost.Rank{NUMA: a.ranks[r].NUMA, Cache: a.ranks[r].Cache}.Place()
}

// cells are the seconds that a byte takes between places, by number; nil where one is missing, or where there is nothing to choose.
func (a *Arrangement) cells(h *site, names []string, at map[int]int) [][]float64 {
	if len(names) < 3 && !(len(names) == 2 && len(a.hosts) > 1) {
		return nil // one tour alone
	}
	cells := make([][]float64, len(names))
	for _, r := range h.ranks {
		from := at[r]
		if cells[from] != nil {
			continue // the first rank of a place speaks
		}
		cells[from] = make([]float64, len(names))
		known := 0
		for _, rate := range a.ranks[r].Rates {
			to := slices.Index(names, rate.To)
			if to >= 0 && to != from && cells[from][to] == 0 && rate.BytesPerSecond > 0 && !math.IsInf(rate.BytesPerSecond, 0) {
				cells[from][to] = 1 / rate.BytesPerSecond
				known++
			}
		}
		if known < len(names)-1 {
			return nil
		}
	}
	return cells
}

// tour is an order of places.
func tour(cells [][]float64, closed bool) (best []int) {
	worst, sum := math.Inf(1), math.Inf(1)
	for start := range cells {
		order := greedy(cells, start)
		if w, s := measure(cells, order, closed); w < worst || w == worst && s < sum {
			best, worst, sum = order, w, s
		}
	}
	return best
}

// greedy goes to the nearest place that is left; of equals to the first.
func greedy(cells [][]float64, start int) []int {
	order, left := []int{start}, len(cells)-1
	seen := make([]bool, len(cells))
	seen[start] = true
	for at := start; left > 0; left-- {
		next := -1
		for p := range cells {
			if !seen[p] && (next < 0 || cells[at][p] < cells[at][next]) {
				next = p
			}
		}
		seen[next], at = true, next
		order = append(order, next)
	}
	return order
}

func measure(cells [][]float64, order []int, closed bool) (worst, sum float64) {
	for k, p := range order {
		if k == len(order)-1 && !closed {
			break
		}
		c := cells[p][order[(k+1)%len(order)]]
		worst, sum = max(worst, c), sum+c
	}
	return worst, sum
}
