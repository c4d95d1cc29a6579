package main

import "encoding/binary"

// stage is a thread's ranks, set for one measurement: a subject at a size in given buffers.
type stage struct {
	*subject
	places  []position
	program program
	once    program // to be checked: in place, a second call would reduce results of the first
}

// position is one rank's buffers in a stage.
type position struct {
	*subject
	me int
	shape
	sendTo, recvIn, lists []byte
}

// stage lays the buffers out and prepares the calls on them.
func (r *runner) stage(s *subject, bytes int, pairs []pair, inPlace bool) *stage {
	st := &stage{subject: s}
	var calls []call
	for k := range r.held {
		p := position{subject: s, me: r.first + k, lists: pairs[k].lists, shape: s.op.shape(bytes, s.typ.size, r.first+k, r.ranks, s.root)}
		if inPlace {
			p.sendTo, p.recvIn = pairs[k].recv[p.sendAt:][:p.send], pairs[k].recv[p.recvAt:][:p.recv]
		} else {
			p.sendTo, p.recvIn = pairs[k].send[:p.send], pairs[k].recv[:p.recv]
		}
		st.places, calls = append(st.places, p), append(calls, p.call(r.comms[k], r.ranks))
	}
	st.program, st.once = newProgram(calls, r.fold), newProgram(calls, 1)
	return st
}

func (p *position) call(comm communicator, n int) call {
	c := call{id: p.op.call, send: start(p.sendTo), recv: start(p.recvIn), count: p.unit, typ: p.typ.value, red: p.red.value,
		root: p.root, to: (p.me + 1) % n, from: (p.me + n - 1) % n, comm: comm}
	if p.op.weight == nil {
		return c
	}
	longer := p.outParts
	if len(p.inParts) > len(p.outParts) {
		longer = p.inParts
	}
	put := func(b []byte, parts []span) {
		for k, s := range parts {
			binary.NativeEndian.PutUint64(b[8*k:], uint64(s.len/p.typ.size))
		}
	}
	put(p.lists[:8*n], longer)
	put(p.lists[8*n:], p.inParts)
	c.counts, c.fromCounts = start(p.lists), start(p.lists[8*n:])
	return c
}

// fill writes what the ranks send, and in the receive buffers what no operation leaves there. Where the two overlap, what is sent
// counts.
func (s *stage) fill() {
	for _, p := range s.places {
		pattern{0xa5}.fill(p.recvIn)
		for k, part := range p.outParts {
			if part.len > 0 {
				p.subject.sent(p.me, k).fill(part.in(p.sendTo))
			}
		}
	}
}

// wrong counts the elements of this rank that differ from what they must be.
func (p *position) wrong() (n int) {
	if !p.op.fills(p.me, p.root) {
		return 0
	}
	for k, part := range p.inParts {
		if part.len > 0 {
			want := p.expected(p.op.from(k, p.me, p.ranks, p.root))
			n += want.wrong(part.in(p.recvIn), p.typ.size)
		}
	}
	return n
}
