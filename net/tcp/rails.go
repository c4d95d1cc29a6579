package tcp

import "math/bits"

// with are the bits of the rails in a state.
func (l *Link) with(state int32) (mask uint64) {
	for w := l.laid.Load(); w != 0; w &= w - 1 {
		k := bits.TrailingZeros64(w)
		if c := l.rails[k].Load(); c != nil && c.state.Load() == state {
			mask |= 1 << k
		}
	}
	return mask
}

// live are the bits of the rails that take slices.
func (l *Link) live() uint64 { return l.with(railLive) }

// Live reports whether a rail is there and has not failed.
func (l *Link) Live(rail int) bool {
	c := l.rails[rail].Load()
	return c != nil && c.state.Load() != railDead
}

// Open reports whether any rail is there and has not failed.
func (l *Link) Open() bool { return l.with(railLive)|l.with(railSuspect)|l.with(railParting) != 0 }

// Parts reports whether a rail has said goodbye and is not at its end.
func (l *Link) Parts() bool { return l.with(railParting) != 0 }

// LetGo is Part for one of several rails: what it has begun arrives, and the others take what is next.
func (l *Link) LetGo(rail int) {
	if c := l.rails[rail].Load(); c != nil {
		c.part()
	}
	l.flush()
}

// RailState is what a rail has done so far, for all communicators.
type RailState struct {
	Path   int
	Socket int
	Sent   uint64 // bytes that its socket took
	Direct uint64 // of those, sent from staging without a copy; on some paths the kernel makes one all the same
	Rate   uint64 // bytes per second while it had something to send, as last measured; 0: not known
	Alive  bool
}

// Rails are the rails that are there, or were: of one that was laid anew, since then.
func (l *Link) Rails() (list []RailState) {
	for k := range l.rails {
		if c := l.rails[k].Load(); c != nil {
			alive := c.state.Load() != railDead || c.said.Load() || l.dead.Load() != nil
			path, socket := Place(k)
			list = append(list, RailState{path, socket, c.sent.Load(), c.direct.Load(), c.rate.Load(), alive})
		}
	}
	return list
}
