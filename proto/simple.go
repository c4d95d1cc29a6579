package proto

import (
	"fmt"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// The protocol "simple": a slice is whole when its reader sees it. The stages are listed at Run.

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
	cmd.NDst, cmd.Shared = 0, s.port >= 0
	if s.kept {
		cmd.Dst[0] = r.base[RecvBuf] + device.Ptr(s.dst+c.offset)
		cmd.NDst = 1
	}
}

// fillPartial prepares the command for the j-th MaxSrc sources of a longer sum, which is kept unrounded in scratch.
func (r *Run) fillPartial(cmd *device.Cmd, c *channel, s *step, j int) {
	cmd.Op, cmd.Red, cmd.Stream, cmd.Shared = device.Reduce, s.red, false, false
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
		room, err := r.ends[s.port].out.Reserve(c.n*r.size, r.like(c, s))
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

// like is the user's memory that a slice comes from or also goes to.
func (r *Run) like(c *channel, s *step) device.Ptr {
	if s.kept {
		return r.base[RecvBuf] + device.Ptr(s.dst+c.offset)
	}
	return r.base[s.src[0].buf] + device.Ptr(s.src[0].off+c.offset)
}

// gather collects the addresses of a slice's sources, in order; false: not now.
func (r *Run) gather(c *channel, s *step, index int) (bool, error) {
	for ; c.got < len(s.src); c.got++ {
		src := &s.src[c.got]
		p := r.base[src.buf] + device.Ptr(src.off+c.offset)
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
