package shm

import (
	"fmt"
	"sync/atomic"

	"hccl.dev/hccl/proto"
)

// Ports are one rank's ends of the ports of a segment. One thread at a time uses them, and it says when an operation is over
// (Rest): while ports rest, the arena may take back staging whose slices have all been read.
type Ports struct {
	s    *Segment
	outs []*out // that have been opened
	busy bool   // the user's own note that state is inUse: the hot path reads no shared word

	state    atomic.Uint32
	lastRest atomic.Uint64 // the arena's clock at the last Rest
	held     int           // regions of its outs; guarded by the arena's mu
}

var _ proto.Ports = (*Ports)(nil)

// The states of Ports.
const (
	resting   = iota
	inUse     // an operation is running: staging stays where it is
	reclaimed // the arena is taking staging back, for a moment
)

func newPorts(s *Segment) *Ports { return &Ports{s: s} }

// Out opens the writing end of a port. peer is the communicator's rank that reads; it is ignored for All.
func (p *Ports) Out(kind proto.Kind, channel, peer int) (proto.Out, error) {
	s := p.s
	if err := p.check(kind, channel, peer); err != nil {
		return nil, err
	}
	if !p.busy {
		p.begin() // the arena walks the list of outs
	}
	o := &out{ports: p, s: s, blocker: -1}
	size := portSize(1)
	if kind == proto.All {
		size = portSize(s.n)
		o.ring = s.base + uintptr(s.allPort(channel, s.self))
		for i := range s.n {
			if i != s.self {
				o.addReader(i, o.ring+ringSize+uintptr(i)*lineSize)
			}
		}
	} else {
		i := s.Index(peer)
		o.ring = s.base + uintptr(s.pairPort(s.kindBase(kind), channel, s.self, i))
		o.addReader(i, o.ring+ringSize)
	}
	if err := s.touch(uint64(o.ring-s.base), size); err != nil {
		return nil, err
	}
	p.outs = append(p.outs, o)
	return o, nil
}

// In opens a reading end. peer is the communicator's rank that writes.
func (p *Ports) In(kind proto.Kind, channel, peer int) (proto.In, error) {
	s := p.s
	if err := p.check(kind, channel, peer); err != nil {
		return nil, err
	}
	i := s.Index(peer)
	if i < 0 {
		return nil, fmt.Errorf("rank %d is not on this host", peer)
	}
	in := &in{s: s, writer: i, view: s.peers[i].view}
	size := portSize(1)
	if kind == proto.All {
		size = portSize(s.n)
		in.ring = s.base + uintptr(s.allPort(channel, i))
		in.ack = word64(in.ring + ringSize + uintptr(s.self)*lineSize)
	} else {
		in.ring = s.base + uintptr(s.pairPort(s.kindBase(kind), channel, i, s.self))
		in.ack = word64(in.ring + ringSize)
	}
	if err := s.touch(uint64(in.ring-s.base), size); err != nil {
		return nil, err
	}
	in.next = in.ack.Load()
	return in, nil
}

func (s *Segment) kindBase(kind proto.Kind) uint64 {
	if kind == proto.Msg {
		return s.msg
	}
	return s.pair
}

func (p *Ports) check(kind proto.Kind, channel, peer int) error {
	if kind > proto.Msg || channel < 0 || channel >= p.s.channels {
		return fmt.Errorf("a port of kind %d on channel %d: the segment has %d channels", kind, channel, p.s.channels)
	}
	if i := p.s.Index(peer); kind != proto.All && i < 0 {
		return fmt.Errorf("a port to rank %d, which is not on this host", peer)
	}
	return nil
}

// begin is passed by every Out at the start of an operation: staging stays from here to Rest.
func (p *Ports) begin() {
	for !p.state.CompareAndSwap(resting, inUse) {
		Yield() // the arena holds the ports for the time of a few loads
	}
	p.busy = true
}

// Rest says that the operation is over: until the next Begin the arena may lend staging that has been read to other ports.
func (p *Ports) Rest() {
	if p.busy {
		p.lastRest.Store(p.s.arena.clock.Add(1))
		p.busy = false
		p.state.Store(resting)
	}
}
