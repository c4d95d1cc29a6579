package core

import (
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/shm"
)

const (
	maxSlice     = 256 << 10 // bytes that every transport takes in one slice
	defaultSlice = 128 << 10
	slotsPerPort = 16
)

// flagPlan tells the header of an operation by plan from one by mail; the algorithm stands in the low bits.
const flagPlan = 0x80

// header is what a rank posts of a call before its data moves.
func header(call *Call, flags uint8, extra uint64) shm.Header {
	h := shm.Header{Func: call.Func, Type: call.Type, Flags: flags, Count: call.Count, Extra: extra}
	if call.Func.Reduces() {
		h.Red = call.Red
	}
	if call.Func.Rooted() {
		h.Root = int32(call.Root)
	}
	if call.Func == coll.AllGatherV || call.Func == coll.ReduceScatterV { // all ranks know all counts
		for _, n := range call.RecvCounts {
			h.Extra = mix(h.Extra, n)
		}
	}
	return h
}

// mix joins two values into a fingerprint.
func mix(a, b uint64) uint64 {
	x := (a ^ b + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	return x ^ x>>29
}

// choose picks algorithm, channels and slice for a call.
func (c *Comm) choose(call *Call) (proto.Choice, error) {
	op, own := c.protoOp(call), c.agreed.setting
	if call.Algo == "" && call.MinChannels == 0 && call.MaxChannels == 0 {
		return wrapChoice(proto.Choose(&own, &op))
	}
	if call.MinChannels > 0 {
		own.MinChannels = call.MinChannels
	}
	if call.MaxChannels > 0 {
		own.MaxChannels = call.MaxChannels
	}
	if call.Algo != "" {
		algos, err := proto.ParseAlgos(call.Algo)
		if err != nil && call.AlgoForced {
			return proto.Choice{}, failf(InvalidArgument, "algSelection %q: %w", call.Algo, err)
		}
		if err == nil {
			own.Algos, own.Forced = algos, call.AlgoForced
		}
	}
	return wrapChoice(proto.Choose(&own, &op))
}

func wrapChoice(choice proto.Choice, err error) (proto.Choice, error) {
	if err != nil {
		return choice, failf(InvalidArgument, "%w", err)
	}
	return choice, nil
}

// planned is a plan and the run that is used for it again and again: its ports stay bound.
type planned struct {
	plan    *proto.Plan
	run     proto.Run
	scratch []byte // for partial sums of more ranks than one command takes
}

// planned returns the plan of a call from the cache, or builds it.
func (c *Comm) planned(call *Call, choice proto.Choice) (*planned, error) {
	key := proto.Key{Func: c.turn.cur.op.Func, Algo: choice.Algo, N: c.n, Rank: c.rank, Channels: choice.Channels,
		Ahead: choice.Ahead, Order: c.agreed.order}
	if call.Func.Rooted() {
		key.Root = call.Root
	}
	if p := c.plans[key]; p != nil {
		return p, nil
	}
	plan, err := proto.Build(key)
	if err != nil {
		return nil, failf(InternalError, "%w", err)
	}
	if c.plans == nil {
		c.plans = map[proto.Key]*planned{}
	}
	c.tellPlan(call, choice)
	p := &planned{plan: plan}
	c.plans[key] = p
	return p, nil
}

// lend gives op the room for partial sums that it needs.
func (p *planned) lend(op *proto.Op, slice uint64) {
	need := proto.ScratchSize(p.plan, op, slice)
	if need == 0 {
		return
	}
	if uint64(len(p.scratch)) < need {
		p.scratch = make([]byte, need)
	}
	op.Scratch, op.ScratchLen = bytesPtr(p.scratch), need
}

func (c *Comm) protoOp(call *Call) proto.Op {
	f := call.Func
	if f == coll.Barrier {
		f = coll.AllReduce
	}
	return proto.Op{Func: f, Type: call.Type, Red: call.Red, N: c.n, Rank: c.rank, Root: call.Root, Count: call.Count,
		Send: call.Send, Recv: call.Recv, Scale: call.Scale, SendCounts: call.SendCounts, SendDispls: call.SendDispls,
		RecvCounts: call.RecvCounts, RecvDispls: call.RecvDispls}
}
