package proto

import (
	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// Run is a plan at work: one operation of one rank. The zero Run is ready for Start; a Run that is started again with a plan of a
// shape it has had before allocates nothing. It belongs to one thread at a time.
//
// Each channel goes through its steps in rounds, "for round: for step: slice round-skew", which gives both ends of a port the
// same order. What is done for one slice of one step goes through the stages
//
//	begin    this step has a slice in this round: lengths, commands
//	room     its output port has a slot               (else not now)
//	gather   all its input ports have their slice     (else not now)
//	submit   the commands go to the queue
//	fence    they are done                            (else not now)
//	finish   inputs are released, the output is committed
//
// "Not now" leaves the channel where it is, and the next Advance goes on from there; the other channels are not held up.
type Run struct {
	plan  *Plan
	table *Table
	queue device.Queue
	ends  []end // by the plan's port numbers

	channels []channel
	steps    []step       // of all channels
	sources  []source     // of all steps
	cmds     []device.Cmd // of all channels

	base    [3]device.Ptr // of each Buffer
	layout  layout        // what the steps' offsets were made for
	size    uint64        // of an element
	slice   uint64        // elements
	partial coll.RedOp
	scratch device.Ptr
	err     error
}

// end is an opened port: one of the two is set.
type end struct {
	out Out
	in  In
}

// layout is what offsets depend on besides the plan and, in the V forms, the counts of the call.
type layout struct {
	typ     coll.DataType
	red     coll.RedOp
	count   uint64
	slice   uint64
	inPlace bool
}

// step is a Step whose ranges have places in their buffers, in bytes.
type step struct {
	src    []source
	dst    uint64 // in the receive buffer
	n      uint64 // elements
	slices uint64
	skew   uint64
	port   int32 // output, -1: none
	scaled int16 // index of the source that PreMulSum scales, -1: none
	red    coll.RedOp
	kept   bool // dst is written
	copies bool // one source
	stream bool // see device.Cmd
}

type source struct {
	off  uint64 // of an own range in buf
	buf  Buffer
	port int32 // -1: an own range
	peer int32
}

// channel is how far one channel has got.
type channel struct {
	steps  []step
	cmds   []device.Cmd
	at     int    // step
	round  uint64 // done when it reaches rounds
	rounds uint64

	begun     bool
	submitted bool
	roomy     bool // room is there
	got       int  // sources whose addresses are in cmds
	n         uint64
	offset    uint64 // bytes from the start of the step's ranges
	room      device.Ptr
	fence     device.Fence
}

// burst bounds the slices of one channel in one Advance, so that the caller looks at its own affairs (an abort) in between.
const burst = 64

// Blocked is the rank that the operation waits for: whose slice is missing, or who has not read; -1 where it is nobody.
func (r *Run) Blocked() int {
	for i := range r.channels {
		c := &r.channels[i]
		if !c.begun || c.submitted || c.round >= c.rounds {
			continue
		}
		s := &c.steps[c.at]
		if !c.roomy {
			return r.ends[s.port].out.Blocker()
		}
		if c.got < len(s.src) && s.src[c.got].port >= 0 {
			return int(s.src[c.got].peer)
		}
	}
	return -1
}

// Busy reports whether a queue still works on the buffers: after an error or an abort they are the caller's once it is false.
func (r *Run) Busy() bool {
	for i := range r.channels {
		if c := &r.channels[i]; c.begun && c.submitted && !c.fence.Done() {
			return true
		}
	}
	return false
}
