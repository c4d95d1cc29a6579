package hccl

import (
	"context"
	"runtime"

	"hccl.dev/hccl/core"
	"hccl.dev/hccl/internal/coll"
)

// Caller is what an operation is asked of: a *Comm, which carries it out, its place on a Stream, which queues it, or in a Group, which
// collects it.
type Caller interface {
	perform(ctx context.Context, r request) error
}

// request is one operation as its generic function was called: lengths in elements, nothing checked yet.
type request struct {
	fn         coll.Func
	typ        coll.DataType
	op         Op
	send, recv buffer
	peer       int // of a message; the root of a rooted collective
	tag        int32
	status     *Status // of RecvMessage, whose message may be shorter

	sendCounts, recvCounts []int // of the V forms
}

// perform is the way of every operation outside a group. A call without V counts and with a context that cannot end allocates
// nothing.
func (c *Comm) perform(ctx context.Context, r request) error {
	if err := c.usable(ctx); err != nil {
		return err
	}
	var call core.Call
	if err := r.check(c.rank, c.n, &call); err != nil {
		return err
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	call.Send, call.Recv = r.send.pin(&pins), r.recv.pin(&pins)
	if ctx.Done() == nil {
		return c.outcome(c.core.Do(&call, 0))
	}
	return c.outcome(c.within(ctx, call))
}

// within is Do with a context that can end. It has a call of its own: one that a closure holds is allocated.
func (c *Comm) within(ctx context.Context, call core.Call) error {
	return limited(ctx, func() { c.giveUp(ctx) }, func() error { return c.core.Do(&call, 0) })
}

// check says whether the lengths fit together on this rank of n, and fills call but for the addresses. A buffer that this rank does
// not use is dropped from r.
func (r *request) check(rank, n int, call *core.Call) error {
	*call = core.Call{Func: r.fn, Type: r.typ, Red: r.op.red, Scale: r.op.factor, Root: r.peer, Tag: r.tag}
	if r.op.red == coll.PreMulSum && r.op.typ != r.typ {
		return argumentf("%v: the factor of PreMulSum is of type %v, the elements of %v", r.fn, r.op.typ, r.typ)
	}
	if err := r.checkPeer(n); err != nil {
		return err
	}
	switch r.fn {
	case coll.Barrier:
		*call = core.BarrierCall(0)
		return nil
	case coll.AllGatherV, coll.ReduceScatterV, coll.AlltoAllV:
		return r.checkBlocks(rank, n, call)
	case coll.Send, coll.Broadcast:
		call.Count = uint64(r.send.n)
		return nil
	case coll.Recv:
		call.Count = uint64(r.recv.n)
		call.UpTo, call.Status = r.status != nil, r.status
		return nil
	}
	return r.checkLengths(rank, n, call)
}

// checkPeer refuses roots, ranks and tags that do not exist.
func (r *request) checkPeer(n int) error {
	message := r.fn == coll.Send || r.fn == coll.Recv
	switch {
	case r.status != nil && r.peer == AnySource:
	case r.fn.Rooted() && (r.peer < 0 || r.peer >= n):
		return argumentf("%v: root %d does not exist in this communicator of %d ranks", r.fn, r.peer, n)
	case message && (r.peer < 0 || r.peer >= n):
		return argumentf("%v: rank %d does not exist in this communicator of %d ranks", r.fn, r.peer, n)
	}
	if message && r.tag < 0 && (r.status == nil || r.tag != AnyTag) {
		return argumentf("%v: tag %d is negative: only RecvMessage takes AnyTag", r.fn, r.tag)
	}
	return nil
}

// shape is how long the slices of a collective are: one block of count elements, or one for each rank.
type shape struct {
	sendBlocks, recvBlocks bool
	sendRoot, recvRoot     bool // only the root uses that slice
}

var shapes = [coll.NumFuncs]shape{
	coll.AllGather:     {recvBlocks: true},
	coll.ReduceScatter: {sendBlocks: true},
	coll.AlltoAll:      {sendBlocks: true, recvBlocks: true},
	coll.Reduce:        {recvRoot: true},
	coll.Gather:        {recvBlocks: true, recvRoot: true},
	coll.Scatter:       {sendBlocks: true, sendRoot: true},
}

func (r *request) checkLengths(rank, n int, call *core.Call) error {
	s := &shapes[r.fn]
	if s.sendRoot && rank != r.peer {
		r.send = buffer{}
		call.Count = uint64(r.recv.n)
		return nil
	}
	if s.recvRoot && rank != r.peer {
		r.recv = buffer{}
		call.Count = uint64(r.send.n)
		return nil
	}
	switch {
	case s.sendBlocks == s.recvBlocks && r.send.n != r.recv.n:
		return argumentf("%v: send has %d elements and recv %d: both need the same number", r.fn, r.send.n, r.recv.n)
	case s.sendBlocks && s.recvBlocks && r.send.n%n != 0:
		return argumentf("%v: %d elements cannot be divided among %d ranks", r.fn, r.send.n, n)
	case s.recvBlocks && !s.sendBlocks && r.recv.n != n*r.send.n:
		return argumentf("%v: recv has %d elements and needs %d: send's %d for each of %d ranks", r.fn, r.recv.n, n*r.send.n, r.send.n, n)
	case s.sendBlocks && !s.recvBlocks && r.send.n != n*r.recv.n:
		return argumentf("%v: send has %d elements and needs %d: recv's %d for each of %d ranks", r.fn, r.send.n, n*r.recv.n, r.recv.n, n)
	}
	count := r.send.n
	if s.sendBlocks {
		count /= n
	}
	call.Count = uint64(count)
	return nil
}

// checkBlocks is check for the V forms, whose blocks stand one behind the other.
func (r *request) checkBlocks(rank, n int, call *core.Call) (err error) {
	var sent, received int
	if r.sendCounts != nil || r.fn == coll.AlltoAllV {
		if call.SendCounts, call.SendDispls, sent, err = r.blocks("send", r.sendCounts, n); err != nil {
			return err
		}
	}
	if call.RecvCounts, call.RecvDispls, received, err = r.blocks("recv", r.recvCounts, n); err != nil {
		return err
	}
	switch r.fn {
	case coll.AllGatherV:
		sent = r.recvCounts[rank]
	case coll.ReduceScatterV:
		sent, received = received, r.recvCounts[rank]
	}
	if r.fn != coll.AlltoAllV {
		call.Count = uint64(max(sent, received))
	}
	switch {
	case r.send.n != sent:
		return argumentf("%v: send has %d elements, but the counts of rank %d ask for %d", r.fn, r.send.n, rank, sent)
	case r.recv.n != received:
		return argumentf("%v: recv has %d elements, but the counts of rank %d ask for %d", r.fn, r.recv.n, rank, received)
	}
	return nil
}

// blocks turns counts into those of the core, with where each block begins.
func (r *request) blocks(what string, counts []int, n int) (sizes, starts []uint64, total int, err error) {
	if len(counts) != n {
		return nil, nil, 0, argumentf("%v: %d counts of %s for %d ranks: one for each is needed", r.fn, len(counts), what, n)
	}
	both := make([]uint64, 2*n)
	sizes, starts = both[:n:n], both[n:]
	for k, count := range counts {
		if count < 0 || total+count < total {
			return nil, nil, 0, argumentf("%v: the count %d of %s for rank %d is negative, or too large", r.fn, count, what, k)
		}
		sizes[k], starts[k] = uint64(count), uint64(total)
		total += count
	}
	return sizes, starts, total, nil
}
