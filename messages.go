package hccl

import (
	"context"

	"hccl.dev/hccl/core"
	"hccl.dev/hccl/internal/coll"
)

// What RecvMessage may name in place of a rank and of a tag.
const (
	AnySource = core.AnySource
	AnyTag    = core.AnyTag
)

// Status is what RecvMessage has taken: the sender, the tag, and how long the message was. It is filled when the receive is done.
type Status = core.Status

// Send sends buf to rank to, which must receive as many elements of the same type. A small message does not wait for its receiver;
// buf may be changed in any case once Send has returned.
func Send[T Element](ctx context.Context, on Caller, buf []T, to int) error {
	return SendTagged(ctx, on, buf, to, 0)
}

// Recv receives a message of rank from into buf. Messages between two ranks come in the order in which they were sent.
func Recv[T Element](ctx context.Context, on Caller, buf []T, from int) error {
	return RecvTagged(ctx, on, buf, from, 0)
}

// SendTagged is Send with a tag: the message goes to the receive that names the same. Send's tag is 0.
func SendTagged[T Element](ctx context.Context, on Caller, buf []T, to int, tag int32) error {
	return on.perform(ctx, request{fn: coll.Send, typ: typeOf[T](), send: bufferOf(buf), peer: to, tag: tag})
}

// RecvTagged is Recv of the next message with this tag, whatever comes before it.
func RecvTagged[T Element](ctx context.Context, on Caller, buf []T, from int, tag int32) error {
	return on.perform(ctx, request{fn: coll.Recv, typ: typeOf[T](), recv: bufferOf(buf), peer: from, tag: tag})
}

// RecvMessage receives a message of up to len(buf) elements, from one rank or from AnySource, with one tag or with AnyTag: of those that
// are there the one that came first. Status says what it was.
func RecvMessage[T Element](ctx context.Context, on Caller, buf []T, from int, tag int32, status *Status) error {
	if status == nil {
		status = new(Status)
	}
	return on.perform(ctx, request{fn: coll.Recv, typ: typeOf[T](), recv: bufferOf(buf), peer: from, tag: tag, status: status})
}
