package hccl

import "hccl.dev/hccl/internal/coll"

// Op says how the elements of all ranks become one. The zero Op is Sum.
type Op struct {
	red    coll.RedOp
	typ    coll.DataType // of factor; PreMulSum only
	factor uint64        // bits
}

// The reductions. Integers wrap; Avg of integers is exact and rounds towards zero; NaN of any rank wins: see docs/numerics.md.
var (
	Sum  = Op{red: coll.Sum}
	Prod = Op{red: coll.Prod}
	Max  = Op{red: coll.Max}
	Min  = Op{red: coll.Min}
	Avg  = Op{red: coll.Avg}

	// Of the bits of integers, and of the truth of bools; floats have none.
	And = Op{red: coll.And}
	Or  = Op{red: coll.Or}
	Xor = Op{red: coll.Xor}
)

// PreMulSum multiplies this rank's elements by factor and sums. Ranks may give different factors. T must be the type of the
// elements.
func PreMulSum[T Element](factor T) Op {
	return Op{red: coll.PreMulSum, typ: typeOf[T](), factor: bitsOf(factor)}
}

func (o Op) String() string { return o.red.String() }
