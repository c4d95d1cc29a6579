package hccl

import (
	"context"

	"hccl.dev/hccl/internal/coll"
)

// AllReduce combines send of all ranks, element by element, into recv of all ranks. In place: recv and send are the same slice.
func AllReduce[T Element](ctx context.Context, on Caller, send, recv []T, op Op) error {
	return on.perform(ctx, request{fn: coll.AllReduce, typ: typeOf[T](), op: op, send: bufferOf(send), recv: bufferOf(recv)})
}

// Reduce combines send of all ranks into recv of root. Other ranks' recv is not used. In place: recv and send are the same slice.
func Reduce[T Element](ctx context.Context, on Caller, send, recv []T, op Op, root int) error {
	return on.perform(ctx, request{fn: coll.Reduce, typ: typeOf[T](), op: op, send: bufferOf(send), recv: bufferOf(recv), peer: root})
}

// Broadcast copies buf of root into buf of all others.
func Broadcast[T Element](ctx context.Context, on Caller, buf []T, root int) error {
	b := bufferOf(buf)
	return on.perform(ctx, request{fn: coll.Broadcast, typ: typeOf[T](), send: b, recv: b, peer: root})
}

// AllGather puts send of all ranks one behind the other, by rank, into recv of all. In place: send is this rank's part of recv.
func AllGather[T Element](ctx context.Context, on Caller, send, recv []T) error {
	return on.perform(ctx, request{fn: coll.AllGather, typ: typeOf[T](), send: bufferOf(send), recv: bufferOf(recv)})
}

// ReduceScatter combines send of all ranks, and gives each rank its part of the result: the first len(recv) elements to rank 0, and
// so on. In place: recv is this rank's part of send.
func ReduceScatter[T Element](ctx context.Context, on Caller, send, recv []T, op Op) error {
	return on.perform(ctx, request{fn: coll.ReduceScatter, typ: typeOf[T](), op: op, send: bufferOf(send), recv: bufferOf(recv)})
}

// AlltoAll gives each rank its part of send, and puts the parts that come in its turn into recv, by rank. There is no form in place.
func AlltoAll[T Element](ctx context.Context, on Caller, send, recv []T) error {
	return on.perform(ctx, request{fn: coll.AlltoAll, typ: typeOf[T](), send: bufferOf(send), recv: bufferOf(recv)})
}

// Gather puts send of all ranks one behind the other, by rank, into recv of root. In place: root's send is its part of recv.
func Gather[T Element](ctx context.Context, on Caller, send, recv []T, root int) error {
	return on.perform(ctx, request{fn: coll.Gather, typ: typeOf[T](), send: bufferOf(send), recv: bufferOf(recv), peer: root})
}

// Scatter gives each rank its part of root's send. In place: root's recv is its part of send.
func Scatter[T Element](ctx context.Context, on Caller, send, recv []T, root int) error {
	return on.perform(ctx, request{fn: coll.Scatter, typ: typeOf[T](), send: bufferOf(send), recv: bufferOf(recv), peer: root})
}

// AllGatherV is AllGather with parts of different lengths: counts has one for each rank, the same on all.
func AllGatherV[T Element](ctx context.Context, on Caller, send, recv []T, counts []int) error {
	return on.perform(ctx, request{fn: coll.AllGatherV, typ: typeOf[T](), send: bufferOf(send), recv: bufferOf(recv), recvCounts: counts})
}

// ReduceScatterV is ReduceScatter with parts of different lengths: counts has one for each rank, the same on all.
func ReduceScatterV[T Element](ctx context.Context, on Caller, send, recv []T, counts []int, op Op) error {
	return on.perform(ctx, request{fn: coll.ReduceScatterV, typ: typeOf[T](), op: op, send: bufferOf(send), recv: bufferOf(recv),
		recvCounts: counts})
}

// AlltoAllV is AlltoAll with parts of different lengths: what a rank sends to each, and what it gets from each.
func AlltoAllV[T Element](ctx context.Context, on Caller, send []T, sendCounts []int, recv []T, recvCounts []int) error {
	return on.perform(ctx, request{fn: coll.AlltoAllV, typ: typeOf[T](), send: bufferOf(send), recv: bufferOf(recv),
		sendCounts: sendCounts, recvCounts: recvCounts})
}

// Barrier returns when all ranks have called it; the error of a context that ends before names those that have not.
func Barrier(ctx context.Context, on Caller) error {
	word := bufferOf(make([]byte, 1))
	return on.perform(ctx, request{fn: coll.Barrier, send: word, recv: word})
}
