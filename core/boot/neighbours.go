package boot

import (
	"errors"
	"fmt"
	"math/bits"
)

// arrivals takes the connections of rank r-2^k from the inbox. One from any other rank is not of this exchange.
func (x *rounds) arrivals() {
	for {
		a, ok, _, _ := x.inbox.take(func(a arrival) bool { return a.purpose == x.purpose })
		if !ok {
			return
		}
		s := a.stream()
		for _, l := range x.in {
			if l.peer == a.from && l.s == nil {
				s.hearBy(x.bell)
				l.s, l.ready, s = s, true, nil
				break
			}
		}
		if s != nil {
			s.close()
		}
	}
}

// push connects to the neighbour of round k and sends it its blocks once they are there.
func (x *rounds) push(k int, l *link) error {
	if l.s == nil {
		if !l.ready {
			return nil
		}
		s, err := l.dial.turn()
		if other := (*KeyError)(nil); errors.As(err, &other) {
			return &KeyError{l.peer, fmt.Sprintf("rank %d cannot talk to rank %d: %s", x.rank, l.peer, other.Text)}
		}
		if err != nil && l.dial.refuses(lostAfter) {
			return &RankError{l.peer, fmt.Sprintf("rank %d came to the roll call, but cannot be reached by rank %d any more at %s",
				l.peer, x.rank, l.dial.reasons(err))}
		}
		if x.lim.silent(x.start) && l.dial.mute(err) {
			return &SilentError{l.peer, fmt.Sprintf("came to the roll call, but cannot be reached by rank %d at %s", x.rank,
				l.dial.reasons(err)), false}
		}
		if l.s = s; s == nil {
			return nil
		}
	}
	if l.ready {
		if err := l.read(maxReason); err != nil {
			return err
		}
	}
	if !l.sent && len(x.held) >= 1<<k {
		l.sent = true
		if err := l.s.give(x.blocks(k)); err != nil {
			return l.lost()
		}
	}
	err := l.s.flush()
	if whole := l.sent && l.s.out == nil; err != nil || l.ended && !whole {
		return l.lost()
	}
	return nil
}

// lost is why the neighbour takes nothing more: what it has said, which may not have been read yet, or that it is not there.
func (l *link) lost() error {
	if err := l.read(maxReason); err != nil {
		return err
	}
	return l.gone()
}

// blocks is the frame of round k. All rounds of hundreds of ranks are a gigabyte, which is put together once and not copied.
func (x *rounds) blocks(k int) []byte {
	held := x.held[:x.due(k)]
	return appendPacked(frameHead(frameBlocks, len(held), packedSize(held)), held)
}

// due is how many blocks are sent in round k.
func (x *rounds) due(k int) int { return min(1<<k, x.size()-1<<k) }

// atMost is how long a frame that comes in round k may be: blocks, or a speaker's word.
func (x *rounds) atMost(k int) int {
	most := max(maxReason, x.due(k)*(4+x.most))
	if x.ids > 1 {
		most = max(most, x.n*(4+MaxBlob))
	}
	return most
}

// collect adds the blocks whose turn it is.
func (x *rounds) collect() (moved bool, err error) {
	for len(x.held) < x.size() {
		k := bits.Len(uint(len(x.held))) - 1
		l := x.in[k]
		if l.blocks == nil {
			return moved, nil
		}
		blocks, ok := unpack(l.blocks, x.due(k))
		if !ok || l.count != x.due(k) {
			return false, l.garbage()
		}
		x.held, moved = append(x.held, blocks...), true
	}
	return moved, nil
}
