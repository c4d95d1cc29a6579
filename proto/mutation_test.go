package proto

import (
	"fmt"
	"strings"
	"testing"

	"hccl.dev/hccl/internal/coll"
)

// mutation breaks one step of a plan; false: it does not apply to this step.
type mutation struct {
	name string
	do   func(p *Plan, s *Step) bool
}

var mutations = []mutation{
	{"a dropped step", func(p *Plan, s *Step) bool {
		s.In = nil // taken out of the list by broken
		return true
	}},
	{"a wrong reader", func(p *Plan, s *Step) bool {
		return s.Out.Used && s.Out.Kind == Pair && p.N > 2 && turn(p, &s.Out.Peer)
	}},
	{"a wrong writer", func(p *Plan, s *Step) bool {
		return s.In[0].Port.Used && len(s.In) <= 2 && p.N > 2 && turn(p, &s.In[0].Port.Peer)
	}},
	{"a wrong part", func(p *Plan, s *Step) bool {
		r := ownRange(s)
		if r.Parts > 1 {
			r.Part = (r.Part + 1) % r.Parts
		}
		return r.Parts > 1
	}},
	{"a wrong block", func(p *Plan, s *Step) bool {
		r := ownRange(s)
		n := int32(blocks(p.Func, r.Buf, p.N))
		r.Block = (r.Block + 1) % max(n, 1)
		return n > 1
	}},
	{"a contribution that is added twice", func(p *Plan, s *Step) bool {
		for _, src := range s.In {
			if len(s.In) > 1 && src.Local.Buf == SendBuf {
				s.In = append(s.In, src)
				return true
			}
		}
		return false
	}},
	{"a contribution that is left out", func(p *Plan, s *Step) bool {
		if len(s.In) > 1 {
			s.In = s.In[1:]
			return s.Range().Buf != NoBuf
		}
		return false
	}},
	{"another order of the sum", func(p *Plan, s *Step) bool {
		n := len(s.In)
		if n > 1 {
			s.In[0], s.In[n-1] = s.In[n-1], s.In[0]
		}
		return n > 1
	}},
	{"a mean that is divided too early or not", func(p *Plan, s *Step) bool {
		s.Last = !s.Last
		return p.Func.Reduces() && (s.Last || len(s.In) > 1)
	}},
	{"a result that is not kept", func(p *Plan, s *Step) bool {
		kept := s.Dst.Buf != NoBuf && s.Out.Used
		if kept {
			s.Dst = Ref{}
		}
		return kept && s.Range().Buf != NoBuf
	}},
	{"a result that is not passed on", func(p *Plan, s *Step) bool {
		passed := s.Dst.Buf != NoBuf && s.Out.Used
		s.Out = PortRef{}
		return passed
	}},
}

// turn goes on to the next rank that is not this one.
func turn(p *Plan, peer *int32) bool {
	for {
		if *peer = (*peer + 1) % int32(p.N); int(*peer) != p.Rank {
			return true
		}
	}
}

// ownRange is the range by which a step is tested.
func ownRange(s *Step) *Ref {
	if s.Dst.Buf != NoBuf {
		return &s.Dst
	}
	for i := range s.In {
		if s.In[i].Local.Buf != NoBuf {
			return &s.In[i].Local
		}
	}
	return &Ref{}
}

// broken is a copy of p with one mutated step; nil if the mutation does not apply or New refuses it for its form.
func broken(p *Plan, channel, step int, m mutation) *Plan {
	steps := make([][]Step, len(p.Steps))
	for c := range p.Steps {
		steps[c] = append([]Step(nil), p.Steps[c]...)
		for i := range steps[c] {
			steps[c][i].In = append([]Source(nil), steps[c][i].In...)
		}
	}
	s := &steps[channel][step]
	if !m.do(p, s) {
		return nil
	}
	if s.In == nil {
		steps[channel] = append(steps[channel][:step], steps[channel][step+1:]...)
	}
	b, err := New(p.Key, p.Slots, steps)
	if err != nil {
		return nil
	}
	return b
}

// TestBrokenPlansAreCaught breaks every step of every rank's plan in every way that is always wrong.
func TestBrokenPlansAreCaught(t *testing.T) {
	caught := map[string]int{}
	for _, n := range []int{2, 3, 5} {
		keys(n, func(k Key) {
			if k.Channels == 4 || k.Root > 1 {
				return
			}
			plans := buildAll(t, k)
			shape := Shapes(k)[0]
			for r, p := range plans {
				for i := range p.Steps[k.Channels-1] {
					for _, m := range mutations {
						b := broken(p, k.Channels-1, i, m)
						if b == nil {
							continue
						}
						plans[r] = b
						err := Check(plans, shape)
						plans[r] = p
						if err == nil {
							t.Errorf("%s in step %d of rank %d of %+v was not caught", m.name, i, r, k)
						} else if !strings.Contains(err.Error(), "rank") {
							t.Errorf("%v names no rank", err)
						}
						caught[m.name]++
					}
				}
			}
		})
	}
	for _, m := range mutations {
		if caught[m.name] < 10 {
			t.Errorf("%s was tried %d times only", m.name, caught[m.name])
		}
	}
	t.Log(caught)
}

// TestSwappedStepsAreCaught: a rank that passes chunks on in another order than its neighbour takes them.
func TestSwappedStepsAreCaught(t *testing.T) {
	for _, fn := range []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter} {
		k := Key{Func: fn, Algo: Ring, N: 4, Channels: 1}
		plans := buildAll(t, k)
		steps := append([]Step(nil), plans[1].Steps[0]...)
		steps[0], steps[1] = steps[1], steps[0]
		b, err := New(plans[1].Key, plans[1].Slots, [][]Step{steps})
		if err != nil {
			t.Fatal(err)
		}
		plans[1] = b
		if err := Check(plans); err == nil {
			t.Errorf("swapped steps of %s were not caught", fn)
		} else if !strings.Contains(err.Error(), "step") {
			t.Errorf("%v names no step", err)
		}
	}
}

// TestStuckNamesTheChain: two ranks that each wait for the other before they send.
func TestStuckNamesTheChain(t *testing.T) {
	k := Key{Func: coll.AllGather, Algo: OneShot, N: 2, Channels: 1}
	plans := buildAll(t, k)
	for r, p := range plans {
		s := p.Steps[0]
		swapped := []Step{s[1], s[0]}
		swapped[0].Skew, swapped[1].Skew = 0, 0
		plans[r], _ = New(p.Key, p.Slots, [][]Step{swapped})
	}
	err := Check(plans)
	for _, word := range []string{"rank 0", "rank 1", "step 0", "waits for a slice", "block"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not contain %q", err, word)
		}
	}
}

// TestChannelsMustNotMeet: two channels that write the same elements are a race, whatever the order in which the checker runs them.
func TestChannelsMustNotMeet(t *testing.T) {
	plans := buildAll(t, Key{Func: coll.Broadcast, Algo: OneShot, N: 3, Channels: 2})
	p := plans[2]
	steps := [][]Step{p.Steps[0], append([]Step(nil), p.Steps[1]...)}
	steps[1][0].Dst = steps[0][0].Dst
	plans[2], _ = New(p.Key, p.Slots, steps)
	if err := Check(plans); err == nil || !strings.Contains(err.Error(), "another channel") {
		t.Errorf("two channels that write one range: %v", err)
	}
}

// TestFormIsChecked: steps that mean nothing are refused before they are run.
func TestFormIsChecked(t *testing.T) {
	k := Key{Func: coll.AllReduce, Algo: OneShot, N: 2, Channels: 1}
	whole := Ref{Buf: SendBuf, Parts: 1}
	result := Ref{Buf: RecvBuf, Parts: 1}
	port := PortRef{Used: true, Peer: 1}
	bad := []Step{
		{},
		{In: []Source{{Local: whole}}},
		{In: []Source{{Port: port}}, Out: port},
		{In: []Source{{Local: whole}}, Dst: whole},
		{In: []Source{{Local: whole, Port: port}}, Dst: result},
		{In: []Source{{Port: port}, {Port: port}}, Dst: result},
		{In: []Source{{Local: Ref{Buf: SendBuf, Block: 1, Parts: 1}}}, Dst: result},
		{In: []Source{{Local: Ref{Buf: SendBuf, Part: 2, Parts: 2}}}, Dst: result},
		{In: []Source{{Local: whole}}, Dst: result, Skew: -1},
		{In: []Source{{Local: whole}}, Out: PortRef{Used: true, Peer: 2}},
		{In: []Source{{Local: whole}}, Out: PortRef{Used: true, Peer: 0}},
		{In: []Source{{Local: whole}}, Out: PortRef{Used: true, Kind: Msg, Peer: 1}},
	}
	for i, s := range bad {
		if _, err := New(k, 1, [][]Step{{s}}); err == nil {
			t.Errorf("step %d of the bad ones passed: %s", i, fmt.Sprint(s))
		}
	}
}
