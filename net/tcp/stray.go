package tcp

import "slices"

// A rank that leaves in a hurry, while its sockets are full, may be gone before its goodbye is in one of them: the link stays, and the
// others would wait. So who gets a frame for nobody answers that there is nobody.

// answer has the other end told that a route leads to nobody.
func (l *Link) answer(route uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.strays, route) {
		l.strays = append(l.strays, route)
		l.asked.Store(true)
	}
}

// fillAnswers puts as many of the answers into the batch as fit.
func (c *conn) fillAnswers() {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.strays) > 0 && c.send.frames < batchFrames {
		c.send.head(&header{typ: frameGone, seq: l.strays[0]})
		l.strays = l.strays[1:]
	}
	l.asked.Store(len(l.strays) > 0)
}

// forgotten ends the peer that is sent to by a route: nobody is there any more. One whose goodbye was heard stays gone in order.
func (l *Link) forgotten(route uint64) {
	l.mu.Lock()
	var p *peer
	for _, at := range l.peers {
		if at.there == route {
			p = at
		}
	}
	l.mu.Unlock()
	if p != nil && !p.quits {
		p.lose(&GoneError{Rank: p.rank, Cause: errForgotten})
	}
}
