package proto

import "hccl.dev/hccl/internal/coll"

// The ring: each rank reads from the one before it and writes to the one after it, in the key's order.
//
//	rank 0 -> 1 -> 2 -> 3 -> 0        N=4, rank 0, all-reduce:
//	step  s=0        send chunk 0
//	      s=1,2      recv chunk 3, 2: add own, send          (the sum of chunk c starts at rank c and ends at rank c-1)
//	      s=3        recv chunk 1: add own, keep, send       (complete: a mean is divided here)
//	      s=4,5      recv chunk 0, 3: keep, send
//	      s=6        recv chunk 2: keep
//
// Two slots are needed: with one, every rank would hold a slice while it waits for the next rank to take the one before.
func (b *builder) ring() {
	switch b.Func {
	case coll.AllReduce:
		b.ringAllReduce()
	case coll.ReduceScatter, coll.ReduceScatterV:
		b.ringReduceScatter()
	case coll.AllGather, coll.AllGatherV, coll.Split:
		b.ringAllGather()
	case coll.Broadcast:
		b.chainBroadcast()
	case coll.Reduce:
		b.chainReduce()
	}
}

func (b *builder) prev() Source  { return from(Pair, b.around(-1)) }
func (b *builder) next() PortRef { return to(b.around(1)) }

func (b *builder) ringAllReduce() {
	n := b.N
	own := func(s int) (send, recv Ref) {
		c := b.around(-s)
		return b.chunk(SendBuf, c), b.chunk(RecvBuf, c)
	}
	send, _ := own(0)
	b.add(Step{In: one(local(send)), Out: b.next()})
	for s := 1; s < n-1; s++ {
		send, _ = own(s)
		b.add(Step{In: one(b.prev(), local(send)), Out: b.next()})
	}
	send, recv := own(n - 1)
	b.add(Step{In: one(b.prev(), local(send)), Dst: recv, Out: b.next(), Last: true})
	for s := n; s < 2*n-2; s++ {
		_, recv = own(s)
		b.add(Step{In: one(b.prev()), Dst: recv, Out: b.next()})
	}
	_, recv = own(2*n - 2)
	b.add(Step{In: one(b.prev()), Dst: recv})
}

// ringReduceScatter starts the sum of block c at rank c+1, so that it ends at rank c.
func (b *builder) ringReduceScatter() {
	b.add(Step{In: one(local(b.send(b.around(-1)))), Out: b.next()})
	for s := 2; s < b.N; s++ {
		b.add(Step{In: one(b.prev(), local(b.send(b.around(-s)))), Out: b.next()})
	}
	b.add(Step{In: one(b.prev(), local(b.send(b.Rank))), Dst: b.recv(0), Last: true})
}

func (b *builder) ringAllGather() {
	b.add(Step{In: one(local(b.send(0))), Dst: b.recv(b.Rank), Out: b.next()})
	for s := 1; s < b.N-1; s++ {
		b.add(Step{In: one(b.prev()), Dst: b.recv(b.around(-s)), Out: b.next()})
	}
	b.add(Step{In: one(b.prev()), Dst: b.recv(b.around(1))})
}

// chainBroadcast is the ring cut open before the root.
func (b *builder) chainBroadcast() {
	s := Step{In: one(b.prev()), Dst: b.recv(0), Out: b.next()}
	if b.Rank == b.Root {
		s.In = one(local(b.send(0)))
	}
	if b.around(1) == b.Root {
		s.Out = PortRef{}
	}
	b.add(s)
}

// chainReduce is the ring cut open behind the root.
func (b *builder) chainReduce() {
	s := Step{In: one(b.prev(), local(b.send(0))), Out: b.next()}
	if b.around(-1) == b.Root {
		s.In = one(local(b.send(0)))
	}
	if b.Rank == b.Root {
		s.Out, s.Dst, s.Last = PortRef{}, b.recv(0), true
	}
	b.add(s)
}
