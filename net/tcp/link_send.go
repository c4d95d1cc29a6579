package tcp

import (
	"math"
	"math/bits"

	"hccl.dev/hccl/proto"
)

// push puts p on the stack of those that are not in active yet.
func (l *Link) push(p *peer) {
	for {
		top := l.fresh.Load()
		p.below = top
		if l.fresh.CompareAndSwap(top, p) {
			return
		}
	}
}

// collect takes the whole stack over: nobody takes a single one off it, so that a peer which comes back is no danger.
func (l *Link) collect() {
	for p := l.fresh.Swap(nil); p != nil; {
		next := p.below
		p.below = nil
		l.active = append(l.active, p)
		p = next
	}
}

// prune lets go of peers that have nothing left to send.
func (l *Link) prune() {
	kept := l.active[:0]
	for _, p := range l.active {
		if !p.waits() {
			p.listed.Store(false)
			if !p.waits() || !p.listed.CompareAndSwap(false, true) { // what came meanwhile may have listed it again
				continue
			}
		}
		kept = append(kept, p)
	}
	clear(l.active[len(kept):])
	l.active = kept
}

// flush sends what waits, as far as the rails take it, and reports whether anything moved. Who finds another thread sending leaves it
// to that one.
func (l *Link) flush() (moved bool) {
	if !l.tx.take() {
		return false
	}
	for more := true; more; more = !l.tx.pass() {
		moved = l.sendSome() || moved
	}
	return moved
}

// sendSome gives the rails what there is, for as long as their sockets have room. The holder of tx calls it.
func (l *Link) sendSome() (moved bool) {
	l.collect()
	if l.orphans.Load() != 0 {
		l.adopt()
	}
	if l.jammed() {
		return false
	}
	for _, p := range l.active {
		p.reap()
	}
	for w := l.parting.Load(); w != 0; w &= w - 1 {
		l.sayGoodbye(bits.TrailingZeros64(w))
	}
	open := l.live() | l.with(railSuspect)
	switch {
	case open == 0:
		l.wants()
	case open&(open-1) == 0:
		moved = l.rails[bits.TrailingZeros64(open)].Load().sendSome(manyBatches, batchBytes)
	default:
		moved = l.share(open)
	}
	l.prune()
	return moved
}

// jammed reports whether the only rail is full and so many peers wait that to go through them for nothing costs much. They are gone through
// when it has room.
func (l *Link) jammed() bool {
	if len(l.active) < crowd || l.parting.Load() != 0 {
		return false
	}
	open := l.live() | l.with(railSuspect)
	if open == 0 || open&(open-1) != 0 {
		return false
	}
	c := l.rails[bits.TrailingZeros64(open)].Load()
	return c.zero == nil && c.blocked.Load()
}

// crowd is how many peers of a link are many.
const crowd = 64

// sayGoodbye has a rail say goodbye, and the rest of what it has begun before.
func (l *Link) sayGoodbye(rail int) {
	c := l.rails[rail].Load()
	c.sendSome(manyBatches, batchBytes)
	if c.said.Load() || c.send.broken {
		l.parting.And(^(uint64(1) << rail))
	}
}

// share gives each batch to the rail by which it would arrive first.
func (l *Link) share(open uint64) (moved bool) {
	for open != 0 {
		k := l.soonest(open)
		if l.rails[k].Load().sendSome(1, sharedBytes) {
			moved = true
		} else {
			open &^= 1 << k // it is full, or nothing is left for it
		}
	}
	return moved
}

// wants asks for a rail if something waits for one.
func (l *Link) wants() {
	need := l.speaks.Load() && l.speaksToSomebody()
	for _, p := range l.active {
		need = need || p.lost() == nil && (p.news.Load() || !p.idle())
	}
	if need {
		l.onNeed()
	}
}

// soonest is the rail among those in set by which another slice would arrive first: what is under way on it and the slice, by its
// rate. So the rails are through at about the same time, also where there is not enough to fill them. One that is distant, and no better
// than those that are not, takes less.
func (l *Link) soonest(set uint64) (best int) {
	least := math.Inf(1)
	unknown, alike := l.paces()
	for ; set != 0; set &= set - 1 {
		k := bits.TrailingZeros64(set)
		c := l.rails[k].Load()
		if c.blocked.Load() {
			return k // to be taken out of the set
		}
		rate := c.pace(unknown)
		t := float64(c.unacked()+sharedBytes) / rate
		if rate < alike && l.distant.Load()>>k&1 != 0 {
			t *= distantTimes
		}
		if t < least {
			best, least = k, t
		}
	}
	return best
}

// reap frees the slices that have been acked, or all where nobody will read them. A writer that had no room hears of it.
func (p *peer) reap() {
	if p.lost() != nil {
		p.unqueue()
		p.replies.Store(false)
		for kind := range p.ready {
			p.ready[kind].Store(0)
			p.owed[kind].Store(0)
			p.acks[kind].Store(0)
		}
		p.out.each((*outFlow).drop)
		return
	}
	for kind := range p.acks {
		if p.acks[kind].Load() != 0 {
			p.reapFlows()
			return
		}
	}
}

func (p *peer) reapFlows() {
	room := false
	p.flows(&p.acks, func(kind proto.Kind, channel int) {
		f := p.out.find(kind, channel)
		room = room || f.full(p.f.used)
		f.reap()
	})
	if room {
		p.f.rouse()
	}
}

// adopt gives the slices of rails that failed or stand still to the others, and repeats what such a rail may have lost: acks, and
// control messages.
func (l *Link) adopt() {
	set := l.orphans.Swap(0)
	for k := range l.rails {
		if c := l.rails[k].Load(); set>>k&1 != 0 && c != nil && c.state.Load() == railDead {
			c.dropBatch()
		}
	}
	led := set>>l.lead&1 != 0
	if led {
		l.lead = MaxRails // none: the next rail to send becomes it
	}
	if led {
		l.recallSaid()
	}
	for _, p := range l.all() {
		if led {
			p.recall() // also where nothing new is to be told
		}
		p.retake(set)
		p.owe()
		p.replies.Store(true)
		p.list()
	}
	l.collect()
}

// retake has others take what the rails of a set took and is not acked.
func (p *peer) retake(set uint64) {
	p.each(func(kind proto.Kind, channel int, f *outFlow) {
		for w := set; w != 0; w &= w - 1 {
			if f.retake(uint8(bits.TrailingZeros64(w))) {
				p.ready[kind].Or(1 << channel)
			}
		}
	})
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

// leads reports whether c carries control messages: the first live rail does, and begins with all that the peers have not heard, since
// the rail before may have lost some. They drop those that they have.
func (l *Link) leads(c *conn) bool {
	if l.lead == c.rail {
		return true
	}
	if l.lead < MaxRails {
		if lead := l.rails[l.lead].Load(); lead != nil && lead.state.Load() == railLive {
			return false
		}
	}
	l.lead = c.rail
	l.recallSaid()
	for _, p := range l.all() {
		if p.recall(); p.news.Load() {
			p.list()
		}
	}
	l.collect()
	return true
}
