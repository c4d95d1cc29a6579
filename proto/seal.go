package proto

import "fmt"

// use is one port that a plan needs, opened once when a Run is bound to the plan.
type use struct {
	channel int32
	write   bool
	ref     PortRef
}

// New makes a plan of steps from elsewhere (a file, a test). Slots is the number of slots of a port that it was made for. It
// is checked for form only; Check tells whether the plans of all ranks together are right.
func New(k Key, slots int, steps [][]Step) (*Plan, error) {
	k.Channels = len(steps)
	if err := k.valid(); err != nil {
		return nil, err
	}
	p := &Plan{Key: k, Slots: slots, Steps: steps}
	return p, p.seal()
}

// seal checks the form of every step and numbers the ports, so that a Run finds them without a search.
func (p *Plan) seal() error {
	index := map[use]int32{}
	number := func(u use) int32 {
		i, ok := index[u]
		if !ok {
			i = int32(len(p.uses))
			index[u], p.uses = i, append(p.uses, u)
		}
		return i
	}
	for c, steps := range p.Steps {
		for i := range steps {
			s := &steps[i]
			if err := p.form(s); err != nil {
				return fmt.Errorf("plan of rank %d, channel %d, step %d: %w", p.Rank, c, i, err)
			}
			for k := range s.In {
				if src := &s.In[k]; src.Port.Used {
					src.port = number(use{int32(c), false, src.Port})
				}
			}
			if s.Out.Used {
				s.port = number(use{int32(c), true, s.Out})
			}
			p.nsources += len(s.In)
			p.nsteps++
			p.widest = max(p.widest, len(s.In))
		}
	}
	return nil
}

// form checks one step by itself.
func (p *Plan) form(s *Step) error {
	switch {
	case len(s.In) == 0:
		return fmt.Errorf("it has no source")
	case s.Range().Buf == NoBuf:
		return fmt.Errorf("it has no range of its own, so its length is unknown")
	case s.Dst.Buf == SendBuf:
		return fmt.Errorf("it writes to the send buffer")
	case s.Dst.Buf == NoBuf && !s.Out.Used:
		return fmt.Errorf("its result goes nowhere")
	case s.Skew < 0:
		return fmt.Errorf("its skew is negative")
	}
	seen := map[PortRef]bool{}
	for _, src := range s.In {
		if src.Port.Used == (src.Local.Buf != NoBuf) {
			return fmt.Errorf("a source is not exactly one of range and port")
		}
		if seen[src.Port] {
			return fmt.Errorf("it reads the port from rank %d twice", src.Port.Peer)
		}
		seen[src.Port] = src.Port.Used
		if err := p.formRefs(src.Local, src.Port); err != nil {
			return err
		}
	}
	return p.formRefs(s.Dst, s.Out)
}

func (p *Plan) formRefs(r Ref, port PortRef) error {
	if r.Buf != NoBuf && (r.Buf > RecvBuf || r.Block < 0 || int(r.Block) >= blocks(p.Func, r.Buf, p.N) || r.Part < 0 || r.Part >= r.Parts) {
		return fmt.Errorf("part %d of %d of block %d does not exist in a %s on %d ranks", r.Part, r.Parts, r.Block, p.Func, p.N)
	}
	if port.Used && (port.Kind > All || port.Peer < 0 || int(port.Peer) >= p.N || port.Kind == Pair && int(port.Peer) == p.Rank) {
		return fmt.Errorf("a port of kind %d with rank %d does not exist for rank %d of %d", port.Kind, port.Peer, p.Rank, p.N)
	}
	return nil
}
