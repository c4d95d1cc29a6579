package proto

import (
	"fmt"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// Start makes r ready to run p for op: addresses for the plan's ranges, ports from t, slices of at most slice bytes. All ranks
// must start plans of one set with equal slice and tag. An operation without elements is done at the first Advance. op must be
// Valid; nothing of it is kept.
func (r *Run) Start(p *Plan, op *Op, t *Table, q device.Queue, slice uint64, tag Tag) error {
	if p.Func != op.Func || p.N != op.N || p.Rank != op.Rank || p.Root != op.Root && op.Func.Rooted() {
		return fmt.Errorf("the plan of %s for rank %d of %d, root %d, does not serve %s on rank %d of %d, root %d",
			p.Func, p.Rank, p.N, p.Root, op.Func, op.Rank, op.N, op.Root)
	}
	if !p.Algo.direct() && op.Red == coll.Avg { // the one pair of plan and operation that only types decide
		if err := p.Algo.Fits(op.Func, op.Type, op.Red, op.N); err != nil {
			return err
		}
	}
	if need := ScratchSize(p, op, slice); need > 0 && (op.Scratch == 0 || op.ScratchLen < need) {
		return fmt.Errorf("%s over %d ranks needs %d bytes for partial sums and has %d", op.Func, op.N, need, op.ScratchLen)
	}
	r.err = nil
	if r.plan != p || r.table != t {
		if err := r.bind(p, t); err != nil {
			r.plan = nil
			return err
		}
	}
	r.queue, r.scratch = q, op.Scratch
	if err := r.place(op, slice); err != nil {
		return err
	}
	r.base[SendBuf], r.base[RecvBuf] = op.Send, op.Recv
	for i := range r.cmds {
		r.cmds[i].Scale = op.Scale
	}
	for i := range r.channels {
		c := &r.channels[i]
		c.at, c.round = 0, 0
		c.begun, c.submitted, c.fence = false, false, device.Fence{}
	}
	for i := range r.ends {
		if e := &r.ends[i]; e.out != nil {
			e.out.Begin(tag, r.plan.Slots)
		} else {
			e.in.Begin(tag)
		}
	}
	return nil
}

// sliceElements is the number of elements of a slice of so many bytes, whole lines if it has any.
func sliceElements(bytes, size uint64) uint64 {
	unit := granule(size)
	if n := bytes / size; n > unit {
		return n / unit * unit
	}
	return max(bytes/size, 1)
}

// ScratchSize is the room for partial sums that a Run of p for op needs: none unless a step has more sources than one command.
func ScratchSize(p *Plan, op *Op, slice uint64) uint64 {
	if p.widest <= device.MaxSrc {
		return 0
	}
	return sliceElements(slice, op.Type.Size()) * device.Accumulator(op.Type, op.Red).Size()
}

// bind takes over the shape of a plan: ports, and room for its steps.
func (r *Run) bind(p *Plan, t *Table) error {
	r.ends = resize(r.ends, len(p.uses))
	for i, u := range p.uses {
		var err error
		e := end{}
		if u.write {
			e.out, err = t.Out(u.ref.Kind, int(u.channel), int(u.ref.Peer))
		} else {
			e.in, err = t.In(u.ref.Kind, int(u.channel), int(u.ref.Peer))
		}
		if err != nil {
			return err
		}
		r.ends[i] = e
	}
	perChannel := (max(p.widest, 1)-1)/device.MaxSrc + 1
	r.channels = resize(r.channels, len(p.Steps))
	r.steps = resize(r.steps, p.nsteps)
	r.sources = resize(r.sources, p.nsources)
	r.cmds = resize(r.cmds, perChannel*len(p.Steps))
	r.plan, r.table, r.layout = p, t, layout{}
	step, src := 0, 0
	for c, list := range p.Steps {
		r.channels[c].steps = r.steps[step : step+len(list)]
		r.channels[c].cmds = r.cmds[c*perChannel : (c+1)*perChannel]
		step += len(list)
		for i := range list {
			r.channels[c].steps[i].src = r.sources[src : src+len(list[i].In)]
			src += len(list[i].In)
		}
	}
	return nil
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// place gives the ranges of all steps their places, unless the last operation had the same.
func (r *Run) place(op *Op, slice uint64) error {
	want := layout{op.Type, op.Red, op.Count, slice, op.inPlace()}
	if r.layout == want && op.RecvCounts == nil {
		return nil
	}
	r.layout = layout{}
	r.size = op.Type.Size()
	r.slice = sliceElements(slice, r.size)
	acc := device.Accumulator(op.Type, op.Red)
	for i := range r.cmds {
		c := &r.cmds[i]
		c.SrcType, c.Acc, c.Div = op.Type, acc, uint64(op.N)
	}
	r.partial = coll.Avg
	if acc == op.Type { // device.Cmd: a result of the type Acc is a partial sum only where Acc is not the type of the sources
		r.partial = coll.Sum
	}
	stream := op.reach(RecvBuf)*r.size >= r.queue.StreamFrom()
	for i := range r.channels {
		c := &r.channels[i]
		c.rounds = 0
		for k := range c.steps {
			s := &c.steps[k]
			if err := r.placeStep(s, &r.plan.Steps[i][k], op, want.inPlace); err != nil {
				return err
			}
			s.stream = stream && s.kept
			if s.slices > 0 {
				c.rounds = max(c.rounds, s.slices+s.skew)
			}
		}
	}
	r.layout = want
	return nil
}

func (r *Run) placeStep(s *step, from *Step, op *Op, inPlace bool) error {
	unit := granule(r.size)
	s.skew = uint64(from.Skew)
	s.copies = len(from.In) == 1
	s.red = stepRed(op.Red, from.Last)
	s.scaled, s.port = -1, -1
	if from.Out.Used {
		s.port = from.port
	}
	to := op.span(from.Range(), unit)
	s.n = to.n
	s.kept = from.Dst.Buf != NoBuf
	s.dst = to.lo * r.size
	for k := range from.In {
		src := &from.In[k]
		s.src[k] = source{port: src.port, peer: src.Port.Peer}
		if src.Port.Used {
			continue
		}
		e := op.span(src.Local, unit)
		if e.n != s.n {
			return fmt.Errorf("%s on rank %d: a range of %d elements goes into one of %d", op.Func, op.Rank, e.n, s.n)
		}
		s.src[k] = source{port: -1, buf: src.Local.Buf, off: e.lo * r.size}
		if op.Red == coll.PreMulSum && op.Func.Reduces() && src.Local.Buf == SendBuf {
			s.scaled = int16(k)
		}
	}
	if s.copies && s.scaled < 0 && s.src[0].port < 0 && inPlace && op.ownShare(from.In[0].Local, from.Dst) {
		s.kept = false // a copy onto itself
	}
	r.cut(s, from.Empty)
	return nil
}

// ownShare reports whether a copy from one range to the other is one onto itself when the operation is in place: the functions
// without blocks have their vectors in one place, the others the rank's own block.
func (op *Op) ownShare(src, dst Ref) bool {
	if dst.Buf != RecvBuf || src.Part != dst.Part || src.Parts != dst.Parts {
		return false
	}
	own := func(r Ref) bool { return blocks(op.Func, r.Buf, op.N) == 1 || int(r.Block) == op.Rank }
	return src.Buf == RecvBuf && src == dst || src.Buf == SendBuf && own(src) && own(dst)
}

// cut counts the slices of a step. One that neither keeps its result nor passes it on has none.
func (r *Run) cut(s *step, empty bool) {
	s.slices = 0
	switch {
	case !s.kept && s.port < 0 && s.copies && s.src[0].port < 0:
	case s.n > 0:
		s.slices = (s.n-1)/r.slice + 1
	case empty:
		s.slices = 1
	}
}

// stepRed is the reduction of one step: a mean is a sum until it is complete, and a PreMulSum is a sum of scaled sources.
func stepRed(red coll.RedOp, last bool) coll.RedOp {
	if red == coll.PreMulSum || red == coll.Avg && !last {
		return coll.Sum
	}
	return red
}
