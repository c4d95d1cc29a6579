package proto

import "hccl.dev/hccl/internal/coll"

// exchange is the functions in which each block goes from one rank to one other: all-to-all, gather and scatter. Every rank
// starts with the one after it, so that they do not all write to, or read from, the same one.
func (b *builder) exchange() {
	switch {
	case b.Func == coll.AlltoAll || b.Func == coll.AlltoAllV:
		b.allToAll()
	case b.Func == coll.Gather && b.Rank == b.Root:
		b.add(Step{In: one(local(b.send(0))), Dst: b.recv(b.Rank)})
		for d := 1; d < b.N; d++ {
			p := b.around(d)
			b.add(Step{In: one(from(Pair, p)), Dst: b.recv(p)})
		}
	case b.Func == coll.Gather:
		b.add(Step{In: one(local(b.send(0))), Out: to(b.Root)})
	case b.Rank == b.Root:
		for d := 1; d < b.N; d++ {
			p := b.around(d)
			b.add(Step{In: one(local(b.send(p))), Out: to(p)})
		}
		b.add(Step{In: one(local(b.send(b.Rank))), Dst: b.recv(0)})
	default:
		b.add(Step{In: one(from(Pair, b.Root)), Dst: b.recv(0)})
	}
}

// allToAll offers a slice to everybody before it waits for one. In the V form a pair may have no elements, and only the two know:
// an empty slice then tells the reader that the writer agrees.
func (b *builder) allToAll() {
	empty := b.Func == coll.AlltoAllV
	for d := 1; d < b.N; d++ {
		p := b.around(d)
		b.add(Step{In: one(local(b.send(p))), Out: to(p), Empty: empty})
	}
	b.add(Step{In: one(local(b.send(b.Rank))), Dst: b.recv(b.Rank)})
	for d := 1; d < b.N; d++ {
		p := b.around(-d)
		b.add(Step{In: one(from(Pair, p)), Dst: b.recv(p), Skew: int32(max(1, b.Ahead)), Empty: empty})
	}
}
