package tcp

import (
	"math/bits"

	"hccl.dev/hccl/proto"
)

// Which slice goes next, of all that share a link. Control messages and acks go before any of them (fill).
//
//	fair          one of each peer in turn, and of each of its flows in turn
//	large-first   one of the flow with the most bytes waiting; every fairShare-th goes in turn
//
// So by large-first a flow waits for at most fairShare times as many slices as by fair, however much the others have.
const fairShare = 4

// pick is the flow whose slice goes next. ok is false when there is none. The holder of tx calls it.
func (l *Link) pick() (p *peer, kind proto.Kind, channel int, ok bool) {
	if l.net.largeFirst.Load() {
		if l.picks++; l.picks%fairShare != 0 {
			return l.largest()
		}
	}
	return l.inTurn()
}

func (l *Link) inTurn() (p *peer, kind proto.Kind, channel int, ok bool) {
	for range l.active {
		p = l.active[l.turn%len(l.active)]
		l.turn++
		if kind, channel, ok = p.next(); ok {
			return p, kind, channel, true
		}
	}
	return nil, 0, 0, false
}

// largest is the flow with the most bytes waiting.
func (l *Link) largest() (p *peer, kind proto.Kind, channel int, ok bool) {
	most := uint64(0)
	for _, a := range l.active {
		for k := range a.ready {
			for w := a.ready[k].Load(); w != 0; w &= w - 1 {
				c := bits.TrailingZeros64(w)
				if n := a.out.find(proto.Kind(k), c).waiting(); !ok || n > most {
					p, kind, channel, ok, most = a, proto.Kind(k), c, true, n
				}
			}
		}
	}
	return p, kind, channel, ok
}

// next is the first flow with a slice behind the one served last.
func (p *peer) next() (kind proto.Kind, channel int, ok bool) {
	const rows = len(p.ready)
	row, column := p.turn/MaxChannels, p.turn%MaxChannels
	for range rows + 1 {
		if w := p.ready[row].Load() >> column; w != 0 {
			channel = column + bits.TrailingZeros64(w)
			p.turn = (row*MaxChannels + channel + 1) % (rows * MaxChannels)
			return proto.Kind(row), channel, true
		}
		row, column = (row+1)%rows, 0
	}
	return 0, 0, false
}
