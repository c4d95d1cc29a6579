package pack

import "math"

// arborescence finds the cheapest tree in which every point is reached from the root (J. Edmonds, "Optimum branchings", 1967): every
// point takes its cheapest way in; where that closes a circle, the circle becomes one point that pays for a way in only what it
// costs more than the way that it replaces.
type arborescence struct {
	levels []level
	parent []int
}

// level is the problem after as many circles as its place have been drawn together.
type level struct {
	c      square
	in     []int // the cheapest way into each point
	circle []int // the points that are one on the next level
	to     []int // the point of the next level that each point becomes
	enter  []int // for each point of the next level: the point here by which a way from it enters the circle
	leave  []int // and the point of the circle from which a way to it leaves
	mark   []int
	below  []int // the solution of the next level
}

// solve returns the point before each point, and -1 for the root.
func (a *arborescence) solve(c square, root int) []int {
	a.parent = append(a.parent[:0], make([]int, c.n)...)
	a.at(0).take(c)
	a.reach(0, root, a.parent)
	return a.parent
}

// cost is what the cheapest tree costs.
func (a *arborescence) cost(c square, root int) (sum float64) {
	for v, u := range a.solve(c, root) {
		if u >= 0 {
			sum += c.at(u, v)
		}
	}
	return sum
}

func (a *arborescence) at(depth int) *level {
	for len(a.levels) <= depth {
		a.levels = append(a.levels, level{})
	}
	return &a.levels[depth]
}

func (l *level) take(c square) {
	l.c.n = c.n
	l.c.c = append(l.c.c[:0], c.c...)
}

func (a *arborescence) reach(depth, root int, parent []int) {
	a.at(depth + 1) // so that the level below stays where it is
	l := &a.levels[depth]
	l.cheapest(root)
	if !l.find(root) {
		copy(parent, l.in)
		return
	}
	next := a.at(depth + 1)
	l = &a.levels[depth]
	l.draw(&next.c)
	l.below = resize(l.below, next.c.n)
	a.reach(depth+1, l.to[root], l.below)
	a.levels[depth].undo(parent)
}

func resize(s []int, n int) []int {
	if cap(s) < n {
		return make([]int, n)
	}
	return s[:n]
}

func (l *level) cheapest(root int) {
	l.in = resize(l.in, l.c.n)
	for v := range l.in {
		l.in[v] = -1
		least := math.Inf(1)
		for u := range l.c.n {
			if c := l.c.at(u, v); u != v && v != root && c < least {
				l.in[v], least = u, c
			}
		}
	}
}

// find looks for a circle among the cheapest ways in.
func (l *level) find(root int) bool {
	l.mark = resize(l.mark, l.c.n)
	clear(l.mark)
	l.mark[root] = -1
	for v := range l.mark {
		u := v
		for ; l.mark[u] == 0; u = l.in[u] {
			l.mark[u] = v + 1
		}
		if l.mark[u] != v+1 {
			continue
		}
		l.circle = l.circle[:0]
		for first := u; ; {
			l.circle = append(l.circle, u)
			if u = l.in[u]; u == first {
				return true
			}
		}
	}
	return false
}

// draw makes the circle the last point of the next level.
func (l *level) draw(next *square) {
	l.to = resize(l.to, l.c.n)
	clear(l.to)
	for _, v := range l.circle {
		l.to[v] = -1
	}
	n := 0
	for v := range l.to {
		if l.to[v] == 0 {
			l.to[v] = n
			n++
		} else {
			l.to[v] = l.c.n - len(l.circle)
		}
	}
	next.n = n + 1
	next.c = append(next.c[:0], make([]float64, next.n*next.n)...)
	l.enter, l.leave = resize(l.enter, next.n), resize(l.leave, next.n)
	for u := range l.to {
		if l.to[u] == n {
			continue
		}
		for v := range l.to {
			if l.to[v] < n {
				next.c[l.to[u]*next.n+l.to[v]] = l.c.at(u, v)
			}
		}
		l.join(next, u, n)
	}
	next.c[n*next.n+n] = math.Inf(1)
}

// join gives point u its best ways to and from the circle.
func (l *level) join(next *square, u, circle int) {
	in, out := math.Inf(1), math.Inf(1)
	k := l.to[u]
	l.enter[k], l.leave[k] = l.circle[0], l.circle[0]
	for _, v := range l.circle {
		if c := l.c.at(u, v) - l.c.at(l.in[v], v); c < in {
			in, l.enter[k] = c, v
		}
		if c := l.c.at(v, u); c < out {
			out, l.leave[k] = c, v
		}
	}
	next.c[k*next.n+circle], next.c[circle*next.n+k] = in, out
}

// undo opens the circle where the next level's solution enters it.
func (l *level) undo(parent []int) {
	circle := len(l.below) - 1
	from := make([]int, len(l.below)) // the point here for each point there
	for v, k := range l.to {
		if k < circle {
			from[k] = v
		}
	}
	for v, k := range l.to {
		switch before := -1; {
		case k == circle:
			parent[v] = l.in[v]
		case l.below[k] == circle:
			parent[v] = l.leave[k]
		default:
			if before = l.below[k]; before >= 0 {
				before = from[before]
			}
			parent[v] = before
		}
	}
	k := l.below[circle]
	parent[l.enter[k]] = from[k]
}
