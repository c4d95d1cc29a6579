package hccl

import (
	"context"
	"runtime"
	"slices"

	"hccl.dev/hccl/core"
)

// Calls collects the operations of a Group. It belongs to one goroutine.
type Calls struct {
	items  []core.Item
	comms  []*Comm
	stream *Stream // one of those that operations are on: all go on when the whole group is done
	pins   runtime.Pinner
	err    error // the first refusal; then nothing is carried out
	over   bool
}

// Group carries out together what add asks for, and returns when all is done:
//
//	err := hccl.Group(ctx, func(g *hccl.Calls) error {
//		if err := hccl.Send(ctx, g.On(c), out, right); err != nil {
//			return err
//		}
//		return hccl.Recv(ctx, g.On(c), in, left)
//	})
//
// So messages may cross, and one goroutine may hold several ranks. Collectives of one communicator keep their order. The slices stay
// in use until Group returns, or on a stream until that has come so far. Where an operation is refused, or add returns an error, none is
// carried out. The operations look at the context of Group alone; when it ends, all communicators of the group are aborted.
func Group(ctx context.Context, add func(g *Calls) error) error {
	g := new(Calls)
	kept := false
	defer func() {
		if !kept {
			g.pins.Unpin()
		}
	}()
	err := add(g)
	g.over = true
	switch {
	case err != nil:
		return err
	case g.err != nil:
		return g.err
	case ctx.Err() != nil:
		return ended(ctx, nil)
	case len(g.items) == 0:
		return nil
	}
	err = limited(ctx, func() { g.giveUp(ctx) }, func() error { return core.Enqueue(g.items) })
	if g.stream != nil { // where it is refused this is soon
		kept = true
		g.stream.core.After(g.pins.Unpin)
	}
	return g.outcome(err)
}

// On is where the group's operations on c are asked for.
func (g *Calls) On(c *Comm) Caller { return member{g, c, nil} }

func (g *Calls) giveUp(ctx context.Context) {
	for _, c := range g.comms {
		c.giveUp(ctx)
	}
}

// outcome is err as the communicator sees it whose it is.
func (g *Calls) outcome(err error) error {
	for k := range g.items {
		if err != nil && g.items[k].Err == err {
			k = slices.IndexFunc(g.comms, func(c *Comm) bool { return c.core == g.items[k].Comm })
			return g.comms[k].outcome(err)
		}
	}
	return failure(err)
}

// member is a communicator's place in a group.
type member struct {
	g *Calls
	c *Comm
	s *Stream // nil: the group's end waits
}

func (m member) perform(_ context.Context, r request) error {
	err := m.add(&r)
	if err != nil && m.g.err == nil {
		m.g.err = err
	}
	return err
}

func (m member) add(r *request) error {
	g, c := m.g, m.c
	if err := c.usable(context.Background()); err != nil {
		return err
	}
	if g.over {
		return argumentf("%v: its group is over: use what Group passes only until the function returns", r.fn)
	}
	call := new(core.Call)
	if err := r.check(c.rank, c.n, call); err != nil {
		return err
	}
	if m.s != nil {
		call.Stream, g.stream = &m.s.core, m.s
		m.s.note(c)
	}
	call.Send, call.Recv = r.send.pin(&g.pins), r.recv.pin(&g.pins)
	g.items = append(g.items, core.Item{Comm: c.core, Call: call})
	if !slices.Contains(g.comms, c) {
		g.comms = append(g.comms, c)
	}
	return nil
}
