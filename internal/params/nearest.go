package params

import (
	"strings"
	"sync"
)

// index finds a knob by its name.
var index = sync.OnceValue(func() map[string]*Knob {
	m := map[string]*Knob{}
	for k := range table {
		m[table[k].Name] = &table[k]
	}
	for k := range foreign() {
		m[foreign()[k].Name] = &foreign()[k]
	}
	return m
})

// known returns the knob of that name, nil if there is none.
func known(name string) *Knob { return index()[name] }

// nearest returns the known name that a mistyped one most likely stands for, "" if none is near. The beginning that all names share
// proves nothing, so of the letters behind it a third may be wrong. Where no whole name is near, one that goes on behind the mistyped
// text may be: NCCL_SOKET is nearly a beginning of NCCL_SOCKET_IFNAME. Among equally near ones a name that acts goes first.
func nearest(name string) string {
	_, rest, _ := strings.Cut(name, "_")
	if rest == "" {
		return ""
	}
	limit := len(rest)/3 + 1
	if best := closest(name, limit, func(known string) string { return known }); best != "" {
		return best
	}
	words := strings.Count(name, "_") + 1
	return closest(name, limit, func(known string) string { return beginning(known, words) })
}

// closest returns the known name a part of which is the nearest to the text, "" if none is nearer than limit.
func closest(text string, limit int, part func(known string) string) string {
	best := ""
	for _, list := range [][]Knob{table, foreign()} {
		for k := range list {
			if d := distance(text, part(list[k].Name), limit); d < limit {
				best, limit = list[k].Name, d
			}
		}
	}
	return best
}

// beginning returns the first words of a name.
func beginning(name string, words int) string {
	all := strings.Split(name, "_")
	return strings.Join(all[:min(words, len(all))], "_")
}

// distance counts the letters to insert, delete, replace or swap with their neighbour that turn a into b, up to limit. Case does
// not count, but a name in the wrong case is not equal to the right one.
func distance(a, b string, limit int) int {
	if abs(len(a)-len(b)) >= limit {
		return limit
	}
	x, y := strings.ToUpper(a), strings.ToUpper(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

func abs(n int) int { return max(n, -n) }
