package proto

// The tree: sums go up to the first place of the key's order, and the result down again. It is binomial: the parent of a
// place is the place without its lowest bit that is set.
//
//	0 ─┬─ 1         a place and all below it are neighbours in the order, so that few edges leave a host, and a sum has
//	   ├─ 2 ── 3    ranks in the order's order; N-1 messages each way, log2(N) one after the other
//	   └─ 4 ─┬─ 5
//	         └─ 6
//
// The result of a slice is waited for only after ahead further ones have gone up.
func (b *builder) tree() {
	parent, children := b.treeAt()
	up := Step{In: one(local(b.send(0))), Out: parent}
	for _, c := range children {
		up.In = append(up.In, from(Pair, c))
	}
	down := Step{Dst: b.recv(0), Skew: ahead}
	if parent.Used {
		down.In = one(from(Pair, int(parent.Peer)))
		b.add(up)
	} else {
		down.In, down.Skew, down.Last = up.In, 0, true
	}
	b.spread(down, children)
}

// spread adds a step that keeps the result, and those that pass it on: to the most ranks below first.
func (b *builder) spread(keep Step, children []int) {
	if len(children) > 0 {
		keep.Out = to(children[len(children)-1])
	}
	b.add(keep)
	for k := len(children) - 2; k >= 0; k-- {
		b.add(Step{In: one(local(keep.Dst)), Out: to(children[k]), Skew: keep.Skew})
	}
}

// place is where the rank stands in the order of the channel.
func (b *builder) place() int {
	if b.Order == nil {
		return b.Rank
	}
	return b.Order.place(int(b.channel), b.Rank)
}

// treeAt is the port to the rank's parent, none at the first place, and its children, those with few ranks below them first.
func (b *builder) treeAt() (parent PortRef, children []int) {
	place := b.place()
	for step := 1; place&step == 0 && place+step < b.N; step <<= 1 {
		children = append(children, b.around(step))
	}
	if place > 0 {
		parent = to(b.around(-(place & -place)))
	}
	return parent, children
}
