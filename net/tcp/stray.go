package tcp

// A rank that leaves in a hurry, while its sockets are full, may be gone before its goodbye is in one of them: the link stays, and the
// others would wait. So who gets a frame for nobody answers that there is nobody. A rank whose goodbye is out, and promises slices that
// did not get away, says so without being asked.

// stray is a route that leads to nobody.
type stray struct {
	route uint64
	cut   bool // not all that was promised was sent
}

// answer has the other end told of a stray.
func (l *Link) answer(s stray) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.strays[s] = struct{}{}
	l.asked.Store(true)
}

// fillAnswers puts as many of the answers into the batch as fit.
func (c *conn) fillAnswers() {
	l := c.link
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.strays {
		if c.send.frames == batchFrames {
			break
		}
		h := header{typ: frameGone, seq: s.route}
		if s.cut {
			h.ack = 1
		}
		c.send.head(&h)
		delete(l.strays, s)
	}
	l.asked.Store(len(l.strays) > 0)
}

// forgotten ends the peer that is sent to by a route: nobody is there any more. One whose goodbye was heard stays gone in order, unless
// what it promised will not come.
func (l *Link) forgotten(route uint64, cut bool) {
	l.mu.Lock()
	p := l.sends[route]
	l.mu.Unlock()
	if p != nil && (cut || !p.quits) {
		p.lose(&GoneError{Rank: p.rank, Cause: errForgotten})
	}
}
