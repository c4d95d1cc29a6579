package proto

import "hccl.dev/hccl/internal/coll"

// The direct forms: every rank reads every other. Sums are made in one place, in rank order 0..N-1 and with one rounding, so
// that the result depends on the data alone.
//
//	two-shot all-reduce, rank r, slice i        round t = i      i+ahead        i+ahead+1
//	  own part of chunk p  --Pair-->  p           send ...
//	  chunk r of all ranks --sum--> Recv, All                    reduce
//	  chunk p  <--All-- p  --> Recv                                             keep ...
//
// ahead is how many slices a rank offers before it waits for the first one of the others: the copies of the next slices are
// made while those of this one are under way. Across a network it is Key.Ahead, as much as keeps the way there and back full.
const ahead = 2

// MaxAhead bounds Key.Ahead.
const MaxAhead = 16

func (k Key) ahead() int { return max(ahead, k.Ahead) }

func (b *builder) direct() {
	switch b.Func {
	case coll.AllReduce:
		if b.Algo == OneShot {
			b.oneShotAllReduce()
		} else {
			b.scatterAndSum(b.Rank, toAll(), true)
			b.collect(All)
		}
	case coll.Reduce:
		b.directReduce()
	case coll.ReduceScatter, coll.ReduceScatterV:
		b.directReduceScatter()
	case coll.AllGather, coll.AllGatherV, coll.Split:
		b.directAllGather()
	case coll.Broadcast:
		b.directBroadcast()
	default:
		b.exchange()
	}
}

func (b *builder) oneShotAllReduce() {
	b.add(Step{In: one(local(b.send(0))), Out: toAll()})
	b.add(Step{In: b.contributions(All, b.send(0)), Dst: b.recv(0), Skew: int32(b.ahead()), Last: true})
}

// contributions are what all ranks give for one range, in rank order; this rank's own is read where it lies.
func (b *builder) contributions(k Kind, own Ref) []Source {
	in := make([]Source, b.N)
	for r := range in {
		in[r] = from(k, r)
	}
	in[b.Rank] = local(own)
	return in
}

// scatterAndSum sends each rank its chunk of the vector and sums the own one, which goes to out and, if keep is set, to Recv.
func (b *builder) scatterAndSum(own int, out PortRef, keep bool) {
	for d := 1; d < b.N; d++ {
		p := b.around(d)
		b.add(Step{In: one(local(b.chunk(SendBuf, p))), Out: to(p)})
	}
	s := Step{In: b.contributions(Pair, b.chunk(SendBuf, own)), Out: out, Skew: int32(b.ahead()), Last: true}
	if keep {
		s.Dst = b.chunk(RecvBuf, own)
	}
	b.add(s)
}

// collect keeps the chunks that the other ranks have summed.
func (b *builder) collect(k Kind) {
	skew := int32(b.ahead() + 1)
	if k == Pair { // the port has carried this rank's chunk too: its order must be that of the writer
		skew = int32(2 * b.ahead())
	}
	for d := 1; d < b.N; d++ {
		p := b.around(d)
		b.add(Step{In: one(from(k, p)), Dst: b.chunk(RecvBuf, p), Skew: skew})
	}
}

func (b *builder) directReduce() {
	root := b.Rank == b.Root
	switch {
	case b.Algo == TwoShot && root:
		b.scatterAndSum(b.Rank, PortRef{}, true)
		b.collect(Pair)
	case b.Algo == TwoShot:
		b.scatterAndSum(b.Rank, to(b.Root), false)
	case root:
		b.add(Step{In: b.contributions(Pair, b.send(0)), Dst: b.recv(0), Last: true})
	default:
		b.add(Step{In: one(local(b.send(0))), Out: to(b.Root)})
	}
}

func (b *builder) directReduceScatter() {
	for d := 1; d < b.N; d++ {
		p := b.around(d)
		b.add(Step{In: one(local(b.send(p))), Out: to(p)})
	}
	b.add(Step{In: b.contributions(Pair, b.send(b.Rank)), Dst: b.recv(0), Skew: int32(b.ahead()), Last: true})
}

func (b *builder) directAllGather() {
	b.add(Step{In: one(local(b.send(0))), Dst: b.recv(b.Rank), Out: toAll()})
	for d := 1; d < b.N; d++ {
		p := b.around(d)
		b.add(Step{In: one(from(All, p)), Dst: b.recv(p), Skew: int32(max(1, b.Ahead))})
	}
}

func (b *builder) directBroadcast() {
	if b.Rank == b.Root {
		b.add(Step{In: one(local(b.send(0))), Dst: b.recv(0), Out: toAll()})
		return
	}
	b.add(Step{In: one(from(All, b.Root)), Dst: b.recv(0)})
}
