package proto

import (
	"fmt"

	"hccl.dev/hccl/internal/coll"
)

// Setting is what restricts a choice. All ranks of a communicator must hold the same values.
type Setting struct {
	Algos        Algos  // the algorithms to take; the zero value leaves the choice open
	Forced       bool   // Algos is an order: where nothing in it fits, Choose fails instead of choosing freely
	MinChannels  int    // 0: choose
	MaxChannels  int    // 0: choose
	Reproducible bool   // only algorithms whose results depend on the data alone
	Slice        uint64 // bytes of a slice, 0: choose
	Most         uint64 // bytes that no slice exceeds, 0: any
	Hosts        int    // that the ranks are on; 0 counts as one
	Apart        bool   // no two ranks share memory: each is as on a host of its own
	Wide         bool   // some data cross a network
	Ahead        int    // all do, and ranks may be so many slices ahead; 0: not all
	Rings        int    // orders that rings go in, each on a channel of its own; 0 counts as one
}

// Choice is how an operation is carried out.
type Choice struct {
	Algo     Algo
	Channels int
	Ahead    int    // for Key
	Slice    uint64 // bytes, for Run.Start
	Ignored  bool   // Setting.Algos had nothing that fits and was not an order
}

// Sizes of the rule, in bytes. One shot waits once and reads N vectors, two shots wait twice and read three chunks for each rank. Two
// ranks that share no memory send as many bytes in one shot as in two: there it is one shot at every size.
const (
	oneShotPair = 64 << 10  // of the vector of two ranks
	oneShotRead = 256 << 10 // of all vectors together, of more ranks
	sliceMin    = 8 << 10   // shorter slices cost more in steps than they hide
	sliceMax    = 128 << 10 // longer ones leave the second-level cache
	inFlight    = 256 << 10 // one slice of each port of a rank, where ranks are many: they share the caches
	sliceMany   = 16 << 10  // and slices are not shorter for it than this
	maxChannels = 16        // more ports than this help nobody on one host
)

// SliceEdge is by how many bytes a slice is shorter than its slot, which is a power of two: so it fits at any alignment.
const SliceEdge = 3 * 64

// Choose picks algorithm, channels and slice. It depends only on s and on the parts of op that all ranks share, so that all
// ranks choose alike: type, reduction, number of ranks, and (except for all-to-all-v, where only pairs know) the counts.
func Choose(s *Setting, op *Op) (Choice, error) {
	allowed := s.Algos.set(op.Func)
	var c Choice
	algo, ok := pick(s, op, allowed)
	if !ok && allowed != 0 && !s.Forced {
		c.Ignored, allowed = true, 0
		algo, ok = pick(s, op, allowed)
	}
	if !ok {
		return Choice{}, refuse(s, op, allowed)
	}
	c.Algo = algo
	c.Channels, c.Ahead = spread(s, algo, op)
	c.Slice = s.Slice
	if c.Slice == 0 {
		c.Slice = sliceFor(s, algo, op, c.Channels)
	}
	if s.Most != 0 {
		c.Slice = min(c.Slice, s.Most)
	}
	return c, nil
}

// pick returns the first algorithm in order of preference that is allowed (0: all are) and fits. It runs at every operation, so it
// makes no texts.
func pick(s *Setting, op *Op, allowed AlgoSet) (Algo, bool) {
	for _, a := range order(s, op) {
		if (allowed == 0 || allowed.Has(a)) && a.can(op.Func, op.Type, op.Red, op.N) && (a.Reproducible() || !s.ordered(op)) {
			return a, true
		}
	}
	return 0, false
}

// ordered reports whether the result must not depend on the order of sums.
func (s *Setting) ordered(op *Op) bool { return s.Reproducible && op.Func.Reduces() && op.N > 1 }

// refuse says why pick found nothing: what is wrong with the first algorithm that is allowed.
func refuse(s *Setting, op *Op, allowed AlgoSet) error {
	var why error
	for _, a := range order(s, op) {
		if why != nil || allowed != 0 && !allowed.Has(a) {
			continue
		}
		why = a.Fits(op.Func, op.Type, op.Red, op.N)
		if why == nil && !a.Reproducible() {
			why = fmt.Errorf("%s is not reproducible: it sums in an order that depends on the size; use direct", a)
		}
	}
	if why == nil {
		why = fmt.Errorf("none of the algorithms asked for (%s) exists here; there are ring, tree, star, direct, oneshot and twoshot", allowed)
	}
	return fmt.Errorf("no algorithm for %s of %s, %d ranks: %w", op.Func, op.Type, op.N, why)
}

// Data that cross a network are to be under way in some number: an answer takes long, by time on the wire, in queues, or until a busy
// processor gets to it. One channel that is far ahead does it best, and large operations take some. All take several in the ring and the
// tree, whose slices wait for each other, and where ranks share memory too, whose caches those that are ahead would fill.
const (
	deepChannels = 4
	deepBytes    = 8 << 20 // of data for each channel
	wideChannels = 8
	wideBytes    = 128 << 10
)

// spread is how many channels an operation takes, and how far ahead its ranks are.
func spread(s *Setting, algo Algo, op *Op) (channels, ahead int) {
	least, most := s.MinChannels, s.MaxChannels
	if algo.direct() {
		ahead = s.Ahead
	}
	if least == 0 && s.Wide {
		least = crossing(op, ahead > 0)
	}
	if algo == Ring { // as many as its orders ask for, as far as each channel has a slice worth its steps
		least = max(least, min(s.Rings, int(min(chunkOf(op)/sliceMin, maxChannels))))
	}
	channels = max(1, least)
	if most > 0 {
		channels = min(channels, most)
	}
	return min(channels, maxChannels), ahead
}

// crossing is how many channels pay across a network, where ranks are far ahead (deep) or not.
func crossing(op *Op, deep bool) int {
	most, each := uint64(wideChannels), uint64(wideBytes)
	if deep {
		most, each = deepChannels, deepBytes
	}
	switch op.Func {
	case coll.AllGatherV, coll.ReduceScatterV, coll.AlltoAllV: // how much there is of one need not be known to all
		return int(most)
	}
	return int(min(most, op.Count*op.Type.Size()/each))
}

// chunkOf is the bytes of a chunk where rings and two shots cut an operation, over all channels.
func chunkOf(op *Op) uint64 {
	chunk := shared(op) * op.Type.Size()
	if op.Func == coll.AllReduce || op.Func == coll.Reduce || op.Func == coll.Broadcast {
		chunk /= uint64(op.N)
	}
	return chunk
}

// shared is a count that all ranks know: Count, or for the V forms the largest share where everybody knows it.
func shared(op *Op) uint64 {
	switch op.Func {
	case coll.AllGatherV, coll.ReduceScatterV:
		var most uint64
		for _, c := range op.RecvCounts {
			most = max(most, c)
		}
		return most
	case coll.AlltoAllV:
		return 1 << 20 / op.Type.Size()
	}
	return op.Count
}

// sliceFor cuts a chunk into equal slices, as few as their greatest length allows: each is a chance to wait. Only two ranks in two shots
// take at least two, so that one is copied while the other is summed; more ranks have other chunks to go on with, and fewer processors.
func sliceFor(s *Setting, a Algo, op *Op, channels int) uint64 {
	chunk, pieces, most := shared(op)*op.Type.Size(), uint64(1), uint64(sliceMax)
	if s.Hosts <= 1 && a == TwoShot && op.N > 4 {
		most = max(sliceMany, inFlight/uint64(op.N))
	}
	most -= SliceEdge
	if a != OneShot && a != Star { // of which each slice is as many messages as there are ranks
		chunk = chunkOf(op)
		if op.N == 2 {
			pieces = 2
		}
	}
	chunk /= uint64(channels)
	pieces = max(pieces, (chunk+most-1)/most)
	return max((chunk/pieces+127)&^63, sliceMin)
}
