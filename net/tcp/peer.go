package tcp

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"hccl.dev/hccl/proto"
)

// peer is what a rank keeps for another one of its communicator: the flows both ways, and what waits to be sent. The link to its
// process carries it.
type peer struct {
	f           *Fabric
	link        *Link // nil until it is joined
	rank        int
	there, here uint64 // the routes of what is sent and of what comes
	omit        bool   // it reads no port to all
	out         flowTable[outFlow]
	in          flowTable[inFlow]

	// One bit for each channel of a kind. A bit is set after what it announces, and cleared before it is looked for.
	ready [proto.Msg + 1]atomic.Uint64 // flows with committed slices
	owed  [proto.Msg + 1]atomic.Uint64 // flows whose reader wants to tell how far it is
	acks  [proto.Msg + 1]atomic.Uint64 // flows some of whose slices have been acked

	listed  atomic.Bool   // the link knows that something waits here
	below   *peer         // the one listed before it; see Link.fresh
	turn    int           // the flow after the one served last: kind*MaxChannels + channel; guarded by the link's tx baton
	heard   atomic.Uint64 // control messages heard; written by the holder of the rx baton
	replies atomic.Bool   // the peer is to be told of heard

	gone  atomic.Pointer[goneReason] // set once
	told  uint64                     // what it has told all ranks of this process; guarded by the rx baton
	quits bool                       // it has said goodbye, which counts once all it ever sent is here; guarded by the rx baton
	total uint64                     // how many slices that is; guarded by the rx baton

	outbox
}

type goneReason struct{ err error }

// lost is nil while the peer is there.
func (p *peer) lost() error {
	if g := p.gone.Load(); g != nil {
		return g.err
	}
	return nil
}

// lose marks the peer as gone, for the first reason given, and tells core.
func (p *peer) lose(err error) {
	if !p.gone.CompareAndSwap(nil, &goneReason{err}) {
		return
	}
	p.f.ends.Lock()
	defer p.f.ends.Unlock()
	if p.f.closed.Load() {
		return
	}
	if p.f.onGone != nil {
		p.f.onGone(p.rank, err)
	}
	p.f.rouse()
}

// commit queues s behind the slices of its flow.
func (p *peer) commit(f *outFlow, kind proto.Kind, channel int, s slice) {
	f.push(s)
	p.ready[kind].Or(1 << channel)
	p.list()
}

// flush sends what waits, for this peer and others on the same link.
func (p *peer) flush() {
	if p.link != nil {
		p.link.flush()
	}
}

// list tells the link that something waits. What waits is there before.
func (p *peer) list() {
	if p.link != nil && !p.listed.Load() && p.listed.CompareAndSwap(false, true) {
		p.link.push(p)
	}
}

// waits reports whether something is to be sent or freed.
func (p *peer) waits() bool {
	for kind := range p.ready {
		if p.ready[kind].Load()|p.owed[kind].Load()|p.acks[kind].Load() != 0 {
			return true
		}
	}
	return p.news.Load() || p.replies.Load()
}

// idle reports whether no flow has a slice to send.
func (p *peer) idle() bool {
	for kind := range p.ready {
		if p.ready[kind].Load() != 0 {
			return false
		}
	}
	return true
}

// control queues a message and sends it.
func (p *peer) control(b []byte) error {
	if err := p.lost(); err != nil {
		return err
	}
	if err := p.queue(b); err != nil {
		return err
	}
	p.flush()
	return nil
}

// queue adds a control message to those that wait.
func (p *peer) queue(b []byte) error {
	if p.f.closed.Load() {
		return errClosed
	}
	if bad := p.outbox.queue(header{typ: frameControl, length: uint32(len(b)), route: p.there}, b); bad != "" {
		return fmt.Errorf("rank %d does not read: %s", p.rank, bad)
	}
	p.list()
	return nil
}

// parts ends a peer that has said goodbye, once all that it sent has arrived: its rails may bring the last slices behind the goodbye.
// The rx baton is held.
func (p *peer) parts() {
	arrived := uint64(0)
	p.in.each(func(f *inFlow) { arrived += f.arrived.Load() })
	if arrived == p.total {
		p.lose(&GoneError{Rank: p.rank, Orderly: true})
	}
}

// flows calls do for every channel whose bit is set, and clears it.
func (p *peer) flows(set *[proto.Msg + 1]atomic.Uint64, do func(kind proto.Kind, channel int)) {
	for kind := range set {
		if set[kind].Load() == 0 {
			continue
		}
		for w := set[kind].Swap(0); w != 0; w &= w - 1 {
			do(proto.Kind(kind), bits.TrailingZeros64(w))
		}
	}
}

// each calls do for every flow to the peer.
func (p *peer) each(do func(kind proto.Kind, channel int, f *outFlow)) {
	for kind := range p.ready {
		for channel := range MaxChannels {
			if f := p.out.find(proto.Kind(kind), channel); f != nil {
				do(proto.Kind(kind), channel, f)
			}
		}
	}
}
