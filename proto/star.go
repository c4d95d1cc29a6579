package proto

// The star: every rank gives its vector to the first place of the key's order, which sums in rank order with one rounding, as the direct
// forms do, and the result goes down the tree. So a sum that depends on the data alone takes N-1 messages each way.
//
//	1 ─┐           0 ─┬─ 1
//	2 ─┼─> 0         ├─ 2 ── 3
//	3 ─┘             └─ 4 ...
func (b *builder) star() {
	parent, children := b.treeAt()
	if !parent.Used {
		b.spread(Step{In: b.contributions(Pair, b.send(0)), Dst: b.recv(0), Last: true}, children)
		return
	}
	b.add(Step{In: one(local(b.send(0))), Out: to(b.around(-b.place()))})
	b.spread(Step{In: one(from(Pair, int(parent.Peer))), Dst: b.recv(0), Skew: ahead}, children)
}
