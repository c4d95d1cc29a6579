package shm

import "hccl.dev/hccl/internal/coll"

// Header says which operation a rank has begun. It is posted on the rank's board before any of the operation's data moves, so
// that ranks which disagree can be told apart even if their plans never meet.
type Header struct {
	Seq   uint64 // number in the lane
	Lane  uint32
	Func  coll.Func
	Type  coll.DataType
	Red   coll.RedOp // 0 where nothing is reduced
	Flags uint8      // the caller's; part of the fingerprint
	Root  int32      // 0 where there is none
	Count uint64
	Extra uint64 // fingerprint of what else must agree (counts of the V forms); 0: nothing
}

// Hash is the fingerprint of all that must agree between ranks: everything but Seq and Lane, which are compared as they are.
// The C of shm/fast computes the same value.
func (h *Header) Hash() uint64 {
	what := uint64(h.Func) | uint64(h.Type)<<8 | uint64(h.Red)<<16 | uint64(h.Flags)<<24 | uint64(uint32(h.Root))<<32
	x := mix(what + 0x9e3779b97f4a7c15)
	x = mix(x ^ h.Count)
	return mix(x + h.Extra)
}

// mix is the finaliser of Stafford's variant 13 of splitmix64: each bit of x reaches each bit of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Why is a set of reasons for a waiter to wake and look up. Each rank has a word of them that any rank may add to.
type Why uint32

// The reasons. A set bit stays until its reader clears it.
const (
	WhyFault Why = 1 << iota // a fault record was written: ranks disagree
	WhyAbort                 // a rank has aborted the communicator
	WhyDeath                 // a process of the communicator has ended
	WhyLeft                  // a rank has left in order
	WhyLimit                 // a limit has passed
	WhyClose                 // this rank's own Abort or Destroy wants the waiters out
)

// State is where a rank is in the life of its communicator.
type State uint32

// The states, in this order.
const (
	Absent State = iota // has not mapped the segment yet
	Live
	Left     // finalised: it will post nothing more, all it posted may be read
	Aborted  // gave up
	Followed // gave up because of an error: the cause is elsewhere
)

// A state's word may say on account of which rank it came to that: its number + 1 above causeShift, and whether of others too.
const (
	stateMask  = 0x7f
	causeMore  = 0x80
	causeShift = 8
)

// By is st, told as the doing or absence of ranks.
func (st State) By(ranks []int) State {
	if len(ranks) == 0 {
		return st
	}
	if len(ranks) > 1 {
		st |= causeMore
	}
	return st | State(ranks[0]+1)<<causeShift
}

// Fault is the one record of a disagreement: the first rank that sees one writes it, all ranks report the same.
type Fault struct {
	Ranks   [2]int // of the communicator; a peer wrote them, so their reader holds them against its size
	Headers [2]Header
}
