package proto

import "fmt"

// machine executes the plans of all ranks on symbolic values. It is a second and simpler reading of what a plan means, next to
// Run: no commands, no addresses, one cell for each element.
type machine struct {
	plans []*Plan
	shape Shape
	slots int
	ranks []rankState
	ports map[portKey]*queue
	seen  []int32 // by rank: the last sum that it was seen in
	sums  int32
	inner []*value // result of the step that is being done
}

type rankState struct {
	memory
	channels []progress
}

// progress is one channel of a rank and how far it is.
type progress struct {
	steps             []todo
	at, round, rounds int
}

// todo is a step in this shape.
type todo struct {
	*Step
	n      uint64 // elements
	slices int
	src    []supply
	dst    uint64 // cell, where Dst is set
	out    *queue // nil: none
}

// supply is a source: a cell of the rank, or a port.
type supply struct {
	cell uint64
	in   *queue
}

func newMachine(plans []*Plan, s Shape) *machine {
	m := &machine{plans: plans, shape: s, slots: s.Slots, ports: map[portKey]*queue{}, seen: make([]int32, len(plans))}
	if s.Slots == 0 {
		for _, p := range plans {
			m.slots = max(m.slots, p.Slots)
		}
	}
	m.ranks = make([]rankState, len(plans))
	for r, p := range plans {
		op := s.op(p.Key, r)
		m.ranks[r] = rankState{memory: newMemory(&op, s.InPlace), channels: make([]progress, p.Channels)}
		for c, steps := range p.Steps {
			m.prepare(&m.ranks[r], int32(c), steps)
		}
	}
	return m
}

// prepare gives the steps of one channel their lengths, cells and ports.
func (m *machine) prepare(rk *rankState, c int32, steps []Step) {
	ch := &rk.channels[c]
	ch.steps = make([]todo, len(steps))
	me := int32(rk.op.Rank)
	for i := range steps {
		s := &steps[i]
		d := &ch.steps[i]
		*d = todo{Step: s, n: rk.op.span(s.Range(), 1).n, src: make([]supply, len(s.In))}
		d.slices = int((d.n + m.shape.Slice - 1) / m.shape.Slice)
		if s.Empty {
			d.slices = max(d.slices, 1)
		}
		for k, src := range s.In {
			if src.Port.Used {
				d.src[k].in = m.port(src.Port.Kind, src.Port.Peer, me, c)
			} else {
				d.src[k].cell = rk.cell(src.Local)
			}
		}
		if s.Out.Used {
			d.out = m.port(s.Out.Kind, me, s.Out.Peer, c)
		}
		if s.Dst.Buf != NoBuf {
			d.dst = rk.cell(s.Dst)
		}
		if d.slices > 0 {
			ch.rounds = max(ch.rounds, d.slices+int(s.Skew))
		}
	}
}

func (m *machine) port(kind Kind, writer, reader, channel int32) *queue {
	k := portKey{writer, reader, channel}
	if kind == All {
		k.reader = -1
	}
	q := m.ports[k]
	if q == nil {
		q = &queue{one: int(k.reader), taken: make([]int, 1)}
		if kind == All {
			q.taken = make([]int, len(m.plans))
			q.taken[writer] = 1 << 30 // it does not read its own
		}
		m.ports[k] = q
	}
	return q
}

// execute runs every channel of every rank as far as it goes, until all are through or none gets on.
func (m *machine) execute() error {
	for {
		moved, left := false, false
		for r := range m.ranks {
			for c := range m.ranks[r].channels {
				ok, err := m.work(r, c)
				if err != nil {
					return err
				}
				p := &m.ranks[r].channels[c]
				moved = moved || ok
				left = left || p.round < p.rounds
			}
		}
		if !left {
			return nil
		}
		if !moved {
			return m.stuck()
		}
	}
}

// work runs one channel until it must wait.
func (m *machine) work(r, c int) (moved bool, err error) {
	p := &m.ranks[r].channels[c]
	for ; p.round < p.rounds; p.round, p.at = p.round+1, 0 {
		for ; p.at < len(p.steps); p.at++ {
			d := &p.steps[p.at]
			i := p.round - int(d.Skew)
			if i < 0 || i >= d.slices {
				continue
			}
			if peer, _ := m.waits(r, d); peer >= 0 {
				return moved, nil
			}
			if err := m.step(r, c, p.at, uint64(i)); err != nil {
				ref := d.Range()
				return moved, fmt.Errorf("rank %d, channel %d, step %d, slice %d of part %d/%d of block %d: %w",
					r, c, p.at, i, ref.Part, ref.Parts, ref.Block, err)
			}
			moved = true
		}
	}
	return moved, nil
}

// waits says for whom a step has to wait, -1 if for nobody, and for what.
func (m *machine) waits(r int, d *todo) (peer int, what string) {
	for k := range d.src {
		if q := d.src[k].in; q != nil && *q.reads(r) >= len(q.ends) {
			return int(d.In[k].Port.Peer), "a slice"
		}
	}
	if d.out != nil && d.out.full(m.slots) {
		reader, _ := d.out.behind()
		return reader, "room"
	}
	return -1, ""
}

// step moves one slice.
func (m *machine) step(r, c, at int, slice uint64) error {
	rk := &m.ranks[r]
	d := &rk.channels[c].steps[at]
	lo := slice * m.shape.Slice
	n := min(d.n-lo, m.shape.Slice)
	out, err := m.inputs(rk, c, d, lo, n)
	if err != nil {
		return err
	}
	if d.out != nil {
		d.out.push(out)
	}
	if d.Dst.Buf == NoBuf {
		return nil
	}
	return rk.store(c, at, d.dst+lo, out)
}

// inputs takes a slice from each source and adds them up, element by element.
func (m *machine) inputs(rk *rankState, c int, d *todo, lo, n uint64) ([]*value, error) {
	sum := m.inner[:0]
	for k := range d.src {
		var in []*value
		var err error
		if q := d.src[k].in; q != nil {
			if in = q.pop(rk.op.Rank); uint64(len(in)) != n {
				err = fmt.Errorf("a slice of %d elements comes from rank %d where %d are due", len(in), d.In[k].Port.Peer, n)
			}
		} else {
			in, err = rk.load(c, d.src[k].cell+lo, n)
		}
		if err != nil {
			return nil, err
		}
		sum = append(sum, in...)
	}
	m.inner = sum
	if len(d.src) == 1 && !d.Last {
		return sum, nil
	}
	for i := range n {
		v, err := m.sum(sum[i:], n, len(d.src))
		if err != nil {
			return nil, err
		}
		if d.Last {
			v.done = int32(rk.op.Rank) + 1
		}
		sum[i] = v
	}
	return sum[:n], nil
}

// sum adds up one element of each of k sources, which lie n apart.
func (m *machine) sum(in []*value, n uint64, k int) (*value, error) {
	m.sums++
	v := &value{block: in[0].block, pos: in[0].pos, hops: -1}
	if k == 1 {
		v.ranks = in[0].ranks
	} else {
		v.ranks = make([]int32, 0, len(in[0].ranks)+k-1)
	}
	for i := range uint64(k) {
		a := in[i*n]
		if a.block != v.block || a.pos != v.pos {
			return nil, fmt.Errorf("element %d of block %d is added to element %d of block %d", a.pos, a.block, v.pos, v.block)
		}
		if a.done != 0 {
			return nil, fmt.Errorf("a sum that was complete is added to, or completed again")
		}
		v.hops = max(v.hops, a.hops)
		if k == 1 {
			break
		}
		for _, rank := range a.ranks {
			if m.seen[rank] == m.sums {
				return nil, fmt.Errorf("the contribution of rank %d is added twice", rank)
			}
			m.seen[rank] = m.sums
		}
		v.ranks = append(v.ranks, a.ranks...)
	}
	if k > 1 {
		v.hops++
	}
	return v, nil
}
