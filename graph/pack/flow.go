package pack

// arc is one direction of an arc in a flow network; the opposite direction is the arc at index^1.
type arc struct {
	to   int32
	room int64
}

// flow finds a maximum flow (E. A. Dinitz, 1970): breadth-first levels, then depth-first pushes along them, until the sink is
// out of reach. Capacities are integers, so the cut that it ends with is exact.
type flow struct {
	arcs  []arc
	held  []int64 // capacities of arcs as they were added
	out   [][]int32
	level []int32
	next  []int32
	queue []int32
}

func newFlow(nodes int) *flow {
	return &flow{out: make([][]int32, nodes), level: make([]int32, nodes), next: make([]int32, nodes)}
}

func (f *flow) add(from, to int, room int64) int {
	k := len(f.arcs)
	f.arcs = append(f.arcs, arc{int32(to), room}, arc{int32(from), 0})
	f.held = append(f.held, room, 0)
	f.out[from] = append(f.out[from], int32(k))
	f.out[to] = append(f.out[to], int32(k+1))
	return k
}

func (f *flow) set(k int, room int64) { f.held[k], f.held[k^1] = room, 0 }

// run finds the maximum flow from source to sink for the capacities set, whatever flow was there before.
func (f *flow) run(source, sink int) int64 {
	for k := range f.arcs {
		f.arcs[k].room = f.held[k]
	}
	var total int64
	for f.levels(source, sink) {
		clear(f.next)
		for {
			pushed := f.push(int32(source), int32(sink), 1<<62)
			if pushed == 0 {
				break
			}
			total += pushed
		}
	}
	return total
}

func (f *flow) levels(source, sink int) bool {
	for k := range f.level {
		f.level[k] = -1
	}
	f.level[source] = 0
	f.queue = append(f.queue[:0], int32(source))
	for k := 0; k < len(f.queue); k++ {
		at := f.queue[k]
		for _, a := range f.out[at] {
			if to := f.arcs[a].to; f.arcs[a].room > 0 && f.level[to] < 0 {
				f.level[to] = f.level[at] + 1
				f.queue = append(f.queue, to)
			}
		}
	}
	return f.level[sink] >= 0
}

func (f *flow) push(at, sink int32, most int64) int64 {
	if at == sink {
		return most
	}
	for ; int(f.next[at]) < len(f.out[at]); f.next[at]++ {
		k := f.out[at][f.next[at]]
		a := &f.arcs[k]
		if a.room == 0 || f.level[a.to] != f.level[at]+1 {
			continue
		}
		if pushed := f.push(a.to, sink, min(most, a.room)); pushed > 0 {
			a.room -= pushed
			f.arcs[k^1].room += pushed
			return pushed
		}
	}
	return 0
}

// reached tells whether a node is on the source's side of the minimum cut, after run.
func (f *flow) reached(node int) bool { return f.level[node] >= 0 }
