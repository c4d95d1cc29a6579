package proto

import (
	"fmt"

	"hccl.dev/hccl/internal/coll"
)

// Algo is a way to carry out a collective.
type Algo uint8

// The algorithms. The values enter the fingerprint of an operation: append only.
const (
	Ring    Algo = iota // neighbours pass chunks on; sums are rounded at each hop
	OneShot             // everybody gets everything and reduces for itself, in rank order
	TwoShot             // each rank reduces its chunk in rank order, then hands the result to all
	Tree                // sums go up a tree and the result down; sums are rounded at each level
	Star                // one rank reduces everything in rank order, and the result goes down a tree
	NumAlgos
)

var algoNames = [NumAlgos]string{"ring", "oneshot", "twoshot", "tree", "star"}

func (a Algo) String() string {
	if a < NumAlgos {
		return algoNames[a]
	}
	return "unknown algorithm"
}

// Reproducible reports whether a's results depend on nothing but the data: ranks in order, one rounding.
func (a Algo) Reproducible() bool { return a.direct() || a == Star }

// direct reports whether each rank reads each other.
func (a Algo) direct() bool { return a == OneShot || a == TwoShot }

// can is Fits without a text.
func (a Algo) can(fn coll.Func, t coll.DataType, red coll.RedOp, n int) bool {
	return a < NumAlgos && n >= 1 && n <= MaxRanks && has(fn, a) && !a.overflows(fn, t, red, n)
}

// overflows: partial sums of a mean travel in the type itself.
func (a Algo) overflows(fn coll.Func, t coll.DataType, red coll.RedOp, n int) bool {
	return !a.Reproducible() && fn.Reduces() && red == coll.Avg && !t.IsFloat() && n > 1
}

// Fits says in its text why a cannot do the operation, nil if it can.
func (a Algo) Fits(fn coll.Func, t coll.DataType, red coll.RedOp, n int) error {
	switch {
	case a >= NumAlgos:
		return fmt.Errorf("algorithm %d does not exist", a)
	case n < 1 || n > MaxRanks:
		return fmt.Errorf("%d ranks: a plan has 1 to %d", n, MaxRanks)
	case !has(fn, a):
		return fmt.Errorf("%s has no %s form", fn, a)
	case a.overflows(fn, t, red, n):
		return fmt.Errorf("%s cannot do the mean of %s: partial sums that travel in %s would overflow; use direct", a, t, t)
	}
	return nil
}

// MaxRanks bounds the ranks of a plan, so that rank numbers and step counts fit their fields.
const MaxRanks = 1 << 15

// has reports whether fn can be built with a. Functions without a sum have one direct form, which is called OneShot.
func has(fn coll.Func, a Algo) bool {
	switch fn {
	case coll.AllReduce:
		return true
	case coll.Reduce:
		return a != Tree && a != Star
	case coll.Broadcast, coll.AllGather, coll.AllGatherV, coll.ReduceScatter, coll.ReduceScatterV, coll.Split:
		return a == OneShot || a == Ring
	case coll.AlltoAll, coll.AlltoAllV, coll.Gather, coll.Scatter:
		return a == OneShot
	}
	return false
}
