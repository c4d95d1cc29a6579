package proto

import (
	"fmt"

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

	size    uint64 // of an element
	slice   uint64 // elements
	partial coll.RedOp
	scratch device.Ptr
	err     error
}

// end is an opened port: one of the two is set.
type end struct {
	out Out
	in  In
}

// step is a Step whose ranges have addresses.
type step struct {
	src    []source
	dst    device.Ptr // 0: not kept
	n      uint64     // elements
	slices uint64
	skew   uint64
	port   int32 // output, -1: none
	scaled int16 // index of the source that PreMulSum scales, -1: none
	red    coll.RedOp
	copies bool // one source
	stream bool // see device.Cmd
}

type source struct {
	base device.Ptr // of an own range
	port int32      // -1: an own range
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

// streamBytes is the size of a receive buffer from which on results are written around the caches.
const streamBytes = 4 << 20

// PeerError is a fault in what a peer sent or in the port to it.
type PeerError struct {
	Rank    int
	Channel int
	Err     error
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("rank %d, channel %d: %v", e.Rank, e.Channel, e.Err)
}
func (e *PeerError) Unwrap() error { return e.Err }

// SizeError says that a peer's slice is not as long as this rank's call makes it: the ranks differ in a count.
type SizeError struct{ Got, Want uint64 }

func (e *SizeError) Error() string {
	return fmt.Sprintf("a slice of %d bytes arrived where %d are due: the ranks differ in their counts", e.Got, e.Want)
}

// Advance does all that can be done now. moved tells whether that was anything; after done or an error there is no more to do.
func (r *Run) Advance() (moved, done bool, err error) {
	if r.err != nil {
		return false, false, r.err
	}
	done = true
	for i := range r.channels {
		c := &r.channels[i]
		m, err := r.work(c, i)
		if err != nil {
			r.err = err
			return moved, false, err
		}
		moved = moved || m
		done = done && c.round >= c.rounds
	}
	return moved, done, nil
}

// work goes on with one channel until it must wait.
func (r *Run) work(c *channel, index int) (moved bool, err error) {
	for left := burst; left > 0 && c.round < c.rounds; left-- {
		if !c.begun && !r.begin(c) {
			break
		}
		s := &c.steps[c.at]
		if ok, err := r.submit(c, s, index); !ok || err != nil {
			return moved, err
		}
		if !c.fence.Done() {
			return moved, nil
		}
		r.finish(c, s)
		moved = true
	}
	return moved, nil
}

// next goes to the next step, and from the last one to the next round.
func (c *channel) next() {
	if c.at++; c.at == len(c.steps) {
		c.at = 0
		c.round++
	}
}

// begin finds the next slice that a step has and prepares its commands; false: the plan is through.
func (r *Run) begin(c *channel) bool {
	for c.round < c.rounds {
		s := &c.steps[c.at]
		if i := c.round - s.skew; i < s.slices { // a round before skew wraps to a large number
			lo := i * r.slice
			c.n = min(r.slice, s.n-lo)
			c.offset = lo * r.size
			c.begun, c.submitted, c.got = true, false, 0
			c.roomy = s.port < 0
			r.fill(c, s)
			return true
		}
		c.next()
	}
	return false
}

// fill prepares the commands of a slice up to the addresses that ports give.
func (r *Run) fill(c *channel, s *step) {
	last := (len(s.src) - 1) / device.MaxSrc
	for j := 0; j < last; j++ {
		r.fillPartial(&c.cmds[j], c, s, j)
	}
	cmd := &c.cmds[last]
	cmd.N = c.n
	cmd.Op, cmd.Red, cmd.Stream = device.Reduce, s.red, s.stream
	if s.copies {
		cmd.Op = device.Copy
	}
	cmd.NSrc = uint8(len(s.src) - last*device.MaxSrc)
	cmd.Scaled = scaledAt(s, last)
	cmd.DstType = cmd.SrcType
	cmd.Init = 0
	if last > 0 {
		cmd.Init = r.scratch
	}
	cmd.NDst = 0
	if s.dst != 0 {
		cmd.Dst[0] = s.dst + device.Ptr(c.offset)
		cmd.NDst = 1
	}
}

// fillPartial prepares the command for the j-th MaxSrc sources of a longer sum, which is kept unrounded in scratch.
func (r *Run) fillPartial(cmd *device.Cmd, c *channel, s *step, j int) {
	cmd.Op, cmd.Red, cmd.Stream = device.Reduce, s.red, false
	if s.red == coll.Avg {
		cmd.Red = r.partial
	}
	cmd.N = c.n
	cmd.NSrc, cmd.NDst = device.MaxSrc, 1
	cmd.Scaled = scaledAt(s, j)
	cmd.DstType = cmd.Acc
	cmd.Init = 0
	if j > 0 {
		cmd.Init = r.scratch
	}
	cmd.Dst[0] = r.scratch
}

// scaledAt is the index of the scaled source within the j-th MaxSrc sources.
func scaledAt(s *step, j int) int8 {
	if k := int(s.scaled) - j*device.MaxSrc; s.scaled >= 0 && k >= 0 && k < device.MaxSrc {
		return int8(k)
	}
	return -1
}

// submit brings a slice to the point where its commands are in the queue; false: not now.
func (r *Run) submit(c *channel, s *step, index int) (bool, error) {
	if c.submitted {
		return true, nil
	}
	if !c.roomy {
		room, err := r.ends[s.port].out.Reserve(c.n * r.size)
		if err != nil {
			return false, &PeerError{r.ends[s.port].out.Blocker(), index, err}
		}
		if room == 0 {
			return false, nil
		}
		c.room, c.roomy = room, true
	}
	if ok, err := r.gather(c, s, index); !ok || err != nil {
		return false, err
	}
	last := (len(s.src) - 1) / device.MaxSrc
	if s.port >= 0 {
		cmd := &c.cmds[last]
		cmd.Dst[cmd.NDst] = c.room
		cmd.NDst++
	}
	c.fence, c.submitted = device.Fence{}, true
	if c.n == 0 {
		return true, nil
	}
	fence, err := r.queue.Submit(c.cmds[:last+1])
	if err != nil {
		c.submitted = false
		return false, fmt.Errorf("%s on rank %d: %w", r.plan.Func, r.plan.Rank, err)
	}
	c.fence = fence
	return true, nil
}

// gather collects the addresses of a slice's sources, in order; false: not now.
func (r *Run) gather(c *channel, s *step, index int) (bool, error) {
	for ; c.got < len(s.src); c.got++ {
		src := &s.src[c.got]
		p := src.base + device.Ptr(c.offset)
		if src.port >= 0 {
			in, n, err := r.ends[src.port].in.Peek()
			switch {
			case err != nil:
				return false, &PeerError{int(src.peer), index, err}
			case in == 0:
				return false, nil
			case n != c.n*r.size: // a peer's word is checked, never trusted
				return false, &PeerError{int(src.peer), index, &SizeError{Got: n, Want: c.n * r.size}}
			}
			p = in
		}
		c.cmds[c.got/device.MaxSrc].Src[c.got%device.MaxSrc] = p
	}
	return true, nil
}

// finish hands a slice on: nothing reads the inputs any more, and the output is complete.
func (r *Run) finish(c *channel, s *step) {
	for i := range s.src {
		if port := s.src[i].port; port >= 0 {
			r.ends[port].in.Release()
		}
	}
	if s.port >= 0 {
		r.ends[s.port].out.Commit(c.n * r.size)
	}
	c.begun = false
	c.next()
}

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
