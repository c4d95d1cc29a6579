// Package proto holds collective algorithms as plans, the checker of plans, and the protocol that moves a plan over ports.
//
//	Choose   which algorithm, how many channels, how long a slice: a rule over values that all ranks share
//	Build    a Plan: for one rank and each channel a list of Steps over symbolic parts of the caller's buffers
//	Check    executes the plans of all ranks symbolically: right result, no cyclic wait, nothing left in a port
//	Run      an instance: one plan, one Op, opened ports and a queue; Advance does what can be done now
//
// A Plan knows no count, type or address, so one plan serves every operation of its Key and is cached by the caller. A Run
// turns its parts into element ranges at Start and cuts them into slices; both ends of a port derive the same order of slices
// from their own plan, so nothing but data, a tag and a length travels.
//
// The package moves no byte, opens no link and starts no goroutine: it fills device.Cmds for a device.Queue, and reads and
// writes slots through the interfaces In and Out (port.go), which transports satisfy without importing it. It holds no policy
// about waiting: Advance says "not now" and its caller, package core, decides whether to spin, sleep or give up. Messages
// between two ranks (send, recv) are matched by tag and are no plans; they live in core.
package proto

import "hccl.dev/hccl/internal/coll"

// Buffer names one of the buffers of a call.
type Buffer uint8

// The buffers.
const (
	NoBuf   Buffer = iota
	SendBuf        // what this rank contributes; never written
	RecvBuf        // where its result goes
)

// Ref is a symbolic range of a buffer: part Part of Parts of one block. What a block is depends on the function (see Op.block):
// the whole vector, or the share of one rank. The zero Ref is no range.
type Ref struct {
	Buf         Buffer
	Block       int32
	Part, Parts int32
}

// PortRef names a port of the rank. As a source it is read (Peer is the writer), as Step.Out it is written (Peer is the reader,
// or ignored for All). The zero PortRef is no port.
type PortRef struct {
	Used bool
	Kind Kind
	Peer int32
}

// Source is where a step takes a slice from: a range of an own buffer, or the next slice of a port.
type Source struct {
	Local Ref
	Port  PortRef
	port  int32 // number of Port among the plan's
}

// Step takes one slice from each source in this order, reduces them in this order (or copies the only one), and writes the
// result to a range of the rank's own, to a port, or to both. The step's length is that of Dst, or else of its first local
// source; all its ranges have the same length.
//
// Step s works in round t on slice t-Skew, so a step with a larger Skew lets the ones before it run ahead.
type Step struct {
	In    []Source
	Dst   Ref
	Out   PortRef
	Skew  int32
	Last  bool  // the sum is complete here: a mean is divided, once
	Empty bool  // the first slice passes even when it has no elements: only one end of the port knows the length
	port  int32 // number of Out among the plan's
}

// Range is the range whose length is the step's.
func (s *Step) Range() Ref {
	if s.Dst.Buf != NoBuf {
		return s.Dst
	}
	for i := range s.In {
		if s.In[i].Local.Buf != NoBuf {
			return s.In[i].Local
		}
	}
	return Ref{}
}

// Key is what a plan depends on.
type Key struct {
	Func     coll.Func
	Algo     Algo
	N        int
	Rank     int
	Root     int // 0 where the function has none
	Channels int
	Ahead    int    // in the direct forms, slices that a rank offers before it waits for the first of the others; 0: few, for memory
	Order    *Order // around a ring, and in a tree; nil: that of the numbers
}

// Plan is one rank's part of a collective operation. It is immutable once built and may be run any number of times, by several
// Runs at once.
type Plan struct {
	Key
	Slots int      // the fewest slots of a port with which the plan cannot block itself
	Steps [][]Step // one list for each channel; channels are independent and have ports of their own

	uses     []use // the ports of all channels
	nsteps   int   // of all channels together
	nsources int   // of all steps
	widest   int   // most sources of one step
}
