package proto

import (
	"fmt"
	"strings"

	"hccl.dev/hccl/internal/coll"
)

// value is what an element holds: a sum of the elements at one place of the send buffers of some ranks.
type value struct {
	block int32
	pos   uint64  // within the block
	ranks []int32 // whose, in the order in which they were added
	hops  int     // steps that added, each of which rounds
	done  int32   // rank+1 that declared the sum complete, 0: none
}

// memory is what one rank has: one line of cells in which the two buffers lie, apart or overlapping.
type memory struct {
	op         *Op
	cells      []*value
	wrote      []int16 // channel+1 that wrote the element, 0: none
	step       []int32 // by which step
	read       []int16 // channel+1 that read it, 0: none, -1: several
	send, recv uint64  // where the buffers start
}

// newMemory fills the send buffer of a rank with its contributions.
func newMemory(op *Op, inPlace bool) memory {
	send, recv := op.reach(SendBuf), op.reach(RecvBuf)
	m := memory{op: op, recv: send}
	if inPlace && send > 0 && recv > 0 {
		switch op.Func {
		case coll.AllGather, coll.Gather, coll.AllGatherV, coll.Split:
			m.send, m.recv = op.block(RecvBuf, op.Rank).lo, 0
		case coll.ReduceScatter, coll.Scatter, coll.ReduceScatterV:
			m.recv = op.block(SendBuf, op.Rank).lo
		case coll.AllReduce, coll.Reduce, coll.Broadcast:
			m.recv = 0
		}
	}
	n := max(m.send+send, m.recv+recv)
	m.cells, m.wrote, m.step, m.read = make([]*value, n), make([]int16, n), make([]int32, n), make([]int16, n)
	leaves := make([]value, send)
	own := []int32{int32(op.Rank)}
	for b := 0; send > 0 && b < blocks(op.Func, SendBuf, op.N); b++ {
		e := op.block(SendBuf, b)
		for i := e.lo; i < e.lo+e.n; i++ {
			leaves[i] = value{block: int32(b), pos: i - e.lo, ranks: own}
			m.cells[m.send+i] = &leaves[i]
		}
	}
	return m
}

// cell is where a range starts.
func (m *memory) cell(ref Ref) uint64 {
	if ref.Buf == SendBuf {
		return m.send + m.op.span(ref, 1).lo
	}
	return m.recv + m.op.span(ref, 1).lo
}

// load reads cells for a channel. The result is the memory itself: it is copied before anything is written.
func (m *memory) load(c int, from, n uint64) ([]*value, error) {
	me := int16(c + 1)
	for i := from; i < from+n; i++ {
		if m.cells[i] == nil {
			return nil, fmt.Errorf("element %d is read and was never written", i)
		}
		if w := m.wrote[i]; w != 0 && w != me {
			return nil, fmt.Errorf("element %d is read, which channel %d writes", i, w-1)
		}
		if was := m.read[i]; was != 0 && was != me {
			me = -1
		}
		m.read[i] = me
	}
	return m.cells[from : from+n], nil
}

// store writes cells for a step of a channel.
func (m *memory) store(c, step int, to uint64, v []*value) error {
	me := int16(c + 1)
	for i := range v {
		k := to + uint64(i)
		if w, r := m.wrote[k], m.read[k]; w != 0 && w != me || r != 0 && r != me {
			return fmt.Errorf("element %d is written, which another channel uses", k)
		}
		m.wrote[k], m.step[k], m.cells[k] = me, int32(step), v[i]
	}
	return nil
}

// writer names the step that wrote a cell.
func (m *memory) writer(i uint64) string {
	if m.wrote[i] == 0 {
		return ""
	}
	return fmt.Sprintf(", channel %d, step %d", m.wrote[i]-1, m.step[i])
}

// leftovers says which port still holds a slice.
func (m *machine) leftovers() error {
	for k, q := range m.ports {
		if reader, taken := q.behind(); taken < len(q.ends) {
			return fmt.Errorf("rank %d has not read %d slices that rank %d sent to it on channel %d", reader, len(q.ends)-taken, k.writer, k.channel)
		}
	}
	return nil
}

// stuck describes who waits for whom, from the first rank that waits until the chain closes or ends at a rank that is through.
func (m *machine) stuck() error {
	var text strings.Builder
	r, c := m.waiting()
	visited := make([]bool, len(m.ranks))
	for !visited[r] {
		visited[r] = true
		p := &m.ranks[r].channels[c]
		if p.round >= p.rounds {
			return fmt.Errorf("nobody gets on: %srank %d is through on channel %d", text.String(), r, c)
		}
		d := &p.steps[p.at]
		ref := d.Range()
		peer, what := m.waits(r, d)
		fmt.Fprintf(&text, "rank %d, channel %d, step %d, slice %d of part %d/%d of block %d waits for %s from rank %d; ",
			r, c, p.at, p.round-int(d.Skew), ref.Part, ref.Parts, ref.Block, what, peer)
		r = peer
	}
	return fmt.Errorf("nobody gets on with %d slots: %sand so on around", m.slots, text.String())
}

// waiting is the first rank and channel that is not through.
func (m *machine) waiting() (rank, channel int) {
	for r := range m.ranks {
		for c := range m.ranks[r].channels {
			if p := &m.ranks[r].channels[c]; p.round < p.rounds {
				return r, c
			}
		}
	}
	return 0, 0
}
