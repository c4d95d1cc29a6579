package tcp

import (
	"math"
	"math/bits"

	"hccl.dev/hccl/proto"
)

// flush sends what waits for p, as far as its rails take it, and reports whether anything moved. Who finds another thread sending
// leaves it to that one.
func (p *peer) flush() (moved bool) {
	if !p.tx.take() {
		return false
	}
	for more := true; more; more = !p.tx.pass() {
		moved = p.sendSome() || moved
	}
	return moved
}

// calls reports whether something that was read asks for the sender: slices to be freed, or a reply.
func (p *peer) calls() bool {
	for kind := range p.acks {
		if p.acks[kind].Load() != 0 {
			return true
		}
	}
	return p.replies.Load()
}

// sendSome gives the rails what there is, for as long as their sockets have room. The holder of tx calls it.
func (p *peer) sendSome() (moved bool) {
	if p.gone.Load() != nil {
		p.dropAll()
		return false
	}
	p.reap()
	if p.orphans.Load() != 0 {
		p.adopt()
	}
	open := p.live() | p.suspects()
	if open&(open-1) == 0 {
		if open != 0 {
			moved = p.rails[bits.TrailingZeros32(open)].Load().sendSome(manyBatches, batchBytes)
		}
		return moved
	}
	for open != 0 {
		k := p.soonest(open)
		if p.rails[k].Load().sendSome(1, sharedBytes) {
			moved = true
		} else {
			open &^= 1 << k // it is full, or nothing is left for it
		}
	}
	return moved
}

// soonest is the rail among those in set by which another slice would arrive first: what is under way on it and the slice, by its
// rate. So the rails are through at about the same time, also where there is not enough to fill them.
func (p *peer) soonest(set uint32) (best int) {
	least := math.Inf(1)
	for ; set != 0; set &= set - 1 {
		k := bits.TrailingZeros32(set)
		c := p.rails[k].Load()
		if c.blocked.Load() {
			return k // to be taken out of the set
		}
		rate := max(float64(c.rate.Load()), 1e6)
		if t := float64(c.unacked()+sharedBytes) / rate; t < least {
			best, least = k, t
		}
	}
	return best
}

// reap frees the slices that have been acked.
func (p *peer) reap() {
	for kind := range p.acks {
		if p.acks[kind].Load() != 0 {
			p.flows(&p.acks, func(kind proto.Kind, channel int) { p.out.find(kind, channel).reap() })
			return
		}
	}
}

// adopt gives the slices of rails that failed or stand still to the others, and repeats what such a rail may have lost: acks, and
// control messages.
func (p *peer) adopt() {
	set := p.orphans.Swap(0)
	for k := range p.rails {
		c := p.rails[k].Load()
		if set>>k&1 == 0 || c == nil {
			continue
		}
		if c.state.Load() == railDead {
			c.dropBatch()
		}
		p.each(func(kind proto.Kind, channel int, f *outFlow) {
			if f.retake(uint8(k)) {
				p.ready[kind].Or(1 << channel)
			}
		})
	}
	p.owe()
	p.replies.Store(true)
	p.lead = MaxRails // none: the next rail to send becomes it
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

// owe has all flows' readers tell again how far they are.
func (p *peer) owe() {
	for kind := range p.owed {
		for channel := range MaxChannels {
			if f := p.in.find(proto.Kind(kind), channel); f != nil {
				f.told.Store(0)
				p.owed[kind].Or(1 << channel)
			}
		}
	}
}

// leads reports whether c carries control messages: the first live rail does, and begins with all that the peer has not heard, since
// the rail before may have lost some. The peer drops those that it has.
func (p *peer) leads(c *conn) bool {
	if p.lead == c.rail {
		return true
	}
	if p.lead < MaxRails {
		if l := p.rails[p.lead].Load(); l != nil && l.state.Load() == railLive {
			return false
		}
	}
	p.lead = c.rail
	p.recall()
	return true
}

// dropAll frees what nobody will read.
func (p *peer) dropAll() {
	for k := range p.rails {
		if c := p.rails[k].Load(); c != nil {
			c.dropBatch()
		}
	}
	p.mu.Lock()
	p.first += uint64(p.count)
	p.queued, p.count, p.put = p.queued[:0], 0, 0
	p.mu.Unlock()
	p.out.each((*outFlow).drop)
}
