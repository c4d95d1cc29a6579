// Package coll is the vocabulary of collective operations: functions, element types and reductions, with the numeric values of
// NCCL's ABI where it has them. It holds no logic beyond sizes and names; every other package speaks in these words.
package coll

// Func is the operation that a call asks for.
type Func uint8

// The functions. The order is part of the wire format between ranks: append only.
const (
	AllReduce Func = iota
	Reduce
	Broadcast
	AllGather
	ReduceScatter
	AlltoAll
	Gather
	Scatter
	AllGatherV
	ReduceScatterV
	AlltoAllV
	Send
	Recv
	Split   // an all-gather of colours and keys by which a communicator is divided
	Barrier // an all-reduce of nothing that is looked at
	NumFuncs
)

var funcNames = [NumFuncs]string{"all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter", "all-to-all", "gather",
	"scatter", "all-gather-v", "reduce-scatter-v", "all-to-all-v", "send", "recv", "split", "barrier"}

func (f Func) String() string {
	if f < NumFuncs {
		return funcNames[f]
	}
	return "unknown operation"
}

// Valid reports whether f is one of the functions above.
func (f Func) Valid() bool { return f < NumFuncs }

// Reduces reports whether f combines elements of several ranks.
func (f Func) Reduces() bool {
	return f == AllReduce || f == Reduce || f == ReduceScatter || f == ReduceScatterV || f == Barrier
}

// Rooted reports whether f has a root.
func (f Func) Rooted() bool { return f == Reduce || f == Broadcast || f == Gather || f == Scatter }

// DataType is an element type, with the values of ncclDataType_t up to Float8e5m2. What HCCL adds has higher values in the C ABI,
// far from those that NCCL may give out; the shim turns them into these.
type DataType uint8

// The element types. Those from Int128 on are accumulators inside the library and never named by a caller.
const (
	Int8 DataType = iota
	Uint8
	Int32
	Uint32
	Int64
	Uint64
	Float16
	Float32
	Float64
	Bfloat16
	Float8e4m3
	Float8e5m2
	Int16
	Uint16
	Bool // a byte: 0 is false, any other true, and a reduction gives 0 or 1
	NumTypes
)

// Accumulators of the exact mean of 64-bit integers.
const (
	Int128 DataType = 32 + iota
	Uint128
)

var typeNames = [NumTypes]string{"int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
	"bfloat16", "float8e4m3", "float8e5m2", "int16", "uint16", "bool"}
var typeSizes = [NumTypes]uint64{1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1, 2, 2, 1}

func (t DataType) String() string {
	switch {
	case t < NumTypes:
		return typeNames[t]
	case t == Int128:
		return "int128"
	case t == Uint128:
		return "uint128"
	}
	return "unknown type"
}

// Valid reports whether t is a type that a caller may name.
func (t DataType) Valid() bool { return t < NumTypes }

// Size is the size of one element in bytes.
func (t DataType) Size() uint64 {
	if t < NumTypes {
		return typeSizes[t]
	}
	return 16
}

// IsFloat reports whether t is a floating-point type.
func (t DataType) IsFloat() bool { return t >= Float16 && t <= Float8e5m2 }

// IsNarrow reports whether t is a floating-point type whose sums are accumulated in float32.
func (t DataType) IsNarrow() bool { return t.IsFloat() && t != Float32 && t != Float64 }

// RedOp is a reduction, with the values of ncclRedOp_t for the first five.
type RedOp uint8

// The reductions. PreMulSum scales each rank's own input by its own factor, then sums. And, Or and Xor work on the bits of
// integers, and on the truth of Bool.
const (
	Sum RedOp = iota
	Prod
	Max
	Min
	Avg
	PreMulSum
	And
	Or
	Xor
	NumOps
)

var opNames = [NumOps]string{"sum", "prod", "max", "min", "avg", "premulsum", "and", "or", "xor"}

func (r RedOp) String() string {
	if r < NumOps {
		return opNames[r]
	}
	return "unknown reduction"
}

// Takes reports whether r is defined for elements of type t: bits are those of integers, and truth has neither mean nor factor.
func (r RedOp) Takes(t DataType) bool {
	switch r {
	case And, Or, Xor:
		return !t.IsFloat()
	case Avg, PreMulSum:
		return t != Bool
	}
	return true
}
