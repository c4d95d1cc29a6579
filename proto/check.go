package proto

import (
	"fmt"

	"hccl.dev/hccl/internal/coll"
)

// Shape is a small instance for which plans are checked.
type Shape struct {
	Count   uint64 // elements of a block; the V forms deal out uneven shares of up to this size
	Slice   uint64 // elements of a slice
	Slots   int    // slots of every port; 0: as many as the plans say they need
	InPlace bool   // the in-place form of the function, where it has one
	Holes   bool   // some shares of the V forms are empty
}

// Shapes are what Check takes when it is given none: chunks of unequal length and several slices, apart and in place; chunks of
// so many slices that every port fills up; less than an element for each chunk; and no element at all.
func Shapes(k Key) []Shape {
	parts := uint64(k.N * k.Channels)
	return []Shape{{Count: 2*parts + parts/2 + 1, Slice: 1}, {Count: 5 * parts, Slice: 2, InPlace: true, Holes: true},
		{Count: fills(k)*parts + parts/2 + 1, Slice: 1}, {Count: 1, Slice: 4}, {Slice: 1}}
}

// fills is how many slices of a chunk fill every port, and then some.
func fills(k Key) uint64 { return uint64(6 * k.ahead()) }

// Check executes the plans of all ranks symbolically and says what is wrong with them. It holds if every rank ends with exactly
// the contributions that the function defines, each once and summed in the order that the algorithm promises, nothing else is
// written, channels do not touch each other's elements, nobody waits for ever, and no port is left with a slice.
//
// Plans are deterministic and ports are queues, so what is shown for one order of execution holds for all, and what does not
// block with a number of slots does not block with more.
func Check(plans []*Plan, in ...Shape) error {
	if err := sameSet(plans); err != nil {
		return err
	}
	if len(in) == 0 {
		in = Shapes(plans[0].Key)
	}
	for _, s := range in {
		m := newMachine(plans, s)
		err := m.execute()
		if err == nil {
			err = m.verify()
		}
		if err != nil {
			k := plans[0].Key
			return fmt.Errorf("%s by %s on %d ranks, root %d, %d channels, %d elements in slices of %d: %w",
				k.Func, k.Algo, k.N, k.Root, k.Channels, s.Count, s.Slice, err)
		}
	}
	return nil
}

// sameSet makes sure that the plans are those of ranks 0 to N-1 of one operation.
func sameSet(plans []*Plan) error {
	if len(plans) == 0 {
		return fmt.Errorf("no plan to check")
	}
	for r, p := range plans {
		if p == nil {
			return fmt.Errorf("rank %d has no plan", r)
		}
		want := plans[0].Key
		want.Rank = r
		if p.Key != want || p.N != len(plans) || len(p.Steps) != p.Channels {
			return fmt.Errorf("plan %d of %d is for %+v, wanted is %+v", r, len(plans), p.Key, want)
		}
	}
	return nil
}

// op is the call that rank makes in the shape.
func (s Shape) op(k Key, rank int) Op {
	op := Op{Func: k.Func, Type: coll.Uint8, N: k.N, Rank: rank, Root: k.Root, Count: s.Count}
	switch k.Func {
	case coll.AllGatherV, coll.ReduceScatterV:
		for r := range k.N {
			op.RecvCounts = append(op.RecvCounts, s.share(r, 0))
		}
	case coll.AlltoAllV:
		for r := range k.N {
			op.SendCounts = append(op.SendCounts, s.share(rank, r))
			op.RecvCounts = append(op.RecvCounts, s.share(r, rank))
		}
	}
	return op
}

// share is an uneven count for the V forms, up to Count.
func (s Shape) share(from, to int) uint64 {
	quarters := uint64((3*from + 5*to) % 4)
	if !s.Holes {
		quarters++
	}
	return s.Count * quarters / 4
}

// verify compares what every rank has with what the function defines.
func (m *machine) verify() error {
	for r := range m.ranks {
		rk := &m.ranks[r]
		recv := rk.op.reach(RecvBuf)
		for b := range blocks(rk.op.Func, RecvBuf, rk.op.N) {
			e := rk.op.block(RecvBuf, b)
			for i := range e.n {
				if recv == 0 { // this rank is not the root
					break
				}
				at := rk.recv + e.lo + i
				if err := m.wanted(rk.op, int(rk.wrote[at])-1, b, i, rk.cells[at]); err != nil {
					return fmt.Errorf("rank %d%s: element %d of block %d of the result %w", r, rk.writer(at), i, b, err)
				}
				rk.wrote[at] = 0
			}
		}
		for i, w := range rk.wrote {
			if w != 0 {
				return fmt.Errorf("rank %d%s: element %d is no result", r, rk.writer(uint64(i)), i)
			}
		}
	}
	return m.leftovers()
}

// wanted compares the value at one place of the result, which a channel wrote, with the function's definition.
func (m *machine) wanted(op *Op, channel, block int, pos uint64, v *value) error {
	from, rank := 0, op.Root // the block of the send buffer, and whose if the function does not sum
	switch op.Func {
	case coll.AllGather, coll.AllGatherV, coll.Gather, coll.Split:
		rank = block
	case coll.AlltoAll, coll.AlltoAllV:
		from, rank = op.Rank, block
	case coll.ReduceScatter, coll.ReduceScatterV, coll.Scatter:
		from = op.Rank
	}
	switch {
	case v == nil:
		return fmt.Errorf("was never written")
	case int(v.block) != from || v.pos != pos:
		return fmt.Errorf("came from element %d of block %d, wanted is element %d of block %d", v.pos, v.block, pos, from)
	case !op.Func.Reduces() && (len(v.ranks) != 1 || int(v.ranks[0]) != rank):
		return fmt.Errorf("has the contributions of ranks %v, wanted is rank %d alone", v.ranks, rank)
	case op.Func.Reduces():
		return m.wantedSum(op.N, channel, v)
	}
	return nil
}

// wantedSum looks at contributions and their order: 0..N-1 in one step where the algorithm is reproducible, else around the ring
// to the rank that completes the sum, or in a tree from that rank on.
func (m *machine) wantedSum(n, channel int, v *value) error {
	if len(v.ranks) != n {
		return fmt.Errorf("has the contributions of ranks %v, wanted are all %d", v.ranks, n)
	}
	if v.done == 0 {
		return fmt.Errorf("was not declared complete: its mean was not divided")
	}
	if m.plans[0].Algo.Reproducible() && (v.ranks[0] != 0 || v.hops > 1) {
		return fmt.Errorf("was summed in the order %v with %d roundings, wanted are ranks in order and one rounding", v.ranks, v.hops)
	}
	if m.plans[0].Algo == Tree && v.ranks[0] != v.done-1 {
		return fmt.Errorf("was summed in the order %v and completed by rank %d, which begins with its own", v.ranks, v.done-1)
	}
	if m.plans[0].Algo == Ring && v.ranks[n-1] != v.done-1 {
		return fmt.Errorf("was summed in the order %v and completed by rank %d, which adds its own last", v.ranks, v.done-1)
	}
	for i := 1; i < n; i++ {
		if int(v.ranks[i]) != m.after(channel, int(v.ranks[i-1])) {
			return fmt.Errorf("was summed in the order %v, wanted are neighbours", v.ranks)
		}
	}
	return nil
}

// after is the rank behind r: in the channel's order, or by number.
func (m *machine) after(channel, r int) int {
	b := builder{Key: m.plans[r].Key, channel: int32(channel)}
	if b.Algo.Reproducible() {
		b.Order = nil
	}
	return b.around(1)
}
