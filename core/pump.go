package core

import (
	"time"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/shm"
)

// The pump is the goroutine that moves a communicator's requests while no call does. There is one as long as there are requests. It
// holds the hot lock while it looks, and lets go of it before it sleeps or when somebody else wants it: a call then moves the requests
// beside its own work.

// pump goes on until no request is left. It is inside the communicator.
func (c *Comm) pump() {
	defer c.leave()
	OnTime()
	pin()
	if err := guarded(func() error { c.move(); return nil }); err != nil {
		c.failRequests(c.break_(err))
	}
}

func (c *Comm) move() {
	b := &batch{comms: []*Comm{c}, aside: true, pump: true}
	c.hot.Lock()
	for {
		if e := c.failure.Load(); e != nil {
			c.failRequests(e)
		}
		if c.retire() {
			break
		}
		if c.net != nil {
			c.net.Take()
		}
		if b.work(c) {
			b.lie(c)
		}
	}
	b.settle(c)
	c.hot.Unlock()
}

// retire reports whether the pump is no longer needed; the next request then starts another.
func (c *Comm) retire() bool {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	c.requests.pumping = c.requests.admitted > 0
	return !c.requests.pumping
}

// passOn tells the pump that a call which has moved its requests is over.
func (c *Comm) passOn() {
	if c.open.Load() > 0 {
		c.ringSelf()
	}
}

// work advances until nothing has moved for a while (true), or there is reason to look up.
func (b *batch) work(c *Comm) (idle bool) {
	patience, yielding := asideSpins, yields
	if c.crowded {
		patience = crowdedSpins
	}
	if processorsTaken() {
		yielding = 0
	}
	for k := 0; k < patience+yielding; k++ {
		moved, _ := c.advance()
		switch {
		case c.turn.err != nil || c.idle():
			return false
		case c.hot.Wanted():
			b.letIn(c)
			return false
		case moved:
			k = 0
			b.since = time.Time{}
		case k >= patience && !giveWayAside():
			return true
		}
	}
	return true
}

// letIn lets a call go first that waits for the lock.
func (b *batch) letIn(c *Comm) {
	if c.net != nil {
		c.net.Give()
	}
	c.hot.Unlock()
	shm.Yield()
	c.hot.Lock()
}

// lie sleeps without the lock until something may have changed.
func (b *batch) lie(c *Comm) {
	moves := c.moves
	pause := b.arm()
	if c.seg == nil {
		pause = time.Millisecond // nobody rings
	}
	if moved, _ := c.advance(); !moved && c.turn.err == nil {
		c.hot.Unlock()
		b.bell.Sleep(pause)
		b.disarm()
		c.hot.Lock()
	} else {
		b.disarm()
	}
	if c.moves != moves {
		b.since = time.Time{}
		return
	}
	b.limit = c.requestLimit()
	b.ponder()
}

// requestLimit is what the pump allows a standstill: nothing of its own where all requests have limits of theirs.
func (c *Comm) requestLimit() time.Duration {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	if c.requests.plain == 0 {
		return NoLimit
	}
	return 0
}

// takeIn puts what has been started into the turn, in order. The hot lock is held.
func (c *Comm) takeIn() {
	scheduler.mu.Lock()
	list, cancels := c.requests.inbox, c.requests.cancels
	c.requests.inbox, c.requests.cancels = nil, nil
	c.fresh.Store(false)
	scheduler.mu.Unlock()
	c.turn.compact()
	for _, r := range list {
		if log.On(log.LevelTrace, log.Call) {
			c.trace(&r.call)
		}
		if err := c.add(&r.call); err != nil && ResultOf(err) == InvalidArgument {
			c.complete(r, err)
		} else if err != nil {
			c.drop(err)
			return
		}
	}
	for _, r := range cancels {
		if r.unmet() {
			c.takeBack(r, r.cancelled())
		}
	}
}

// unmet reports whether r is a receive that no message has met. The hot lock is held.
func (r *Request) unmet() bool { return r.msg != nil && r.msg.unmet() }

// takeBack ends a receive that no message has met.
func (c *Comm) takeBack(r *Request, why error) {
	r.verdict = why
	c.msgs.remove(r.msg)
	c.deliver()
}

// deliver tells the requests whose messages are finished.
func (c *Comm) deliver() {
	for k, m := range c.msgs.ended {
		r := m.call.req
		r.msg = nil
		c.complete(r, r.verdict)
		c.msgs.release(m)
		c.msgs.ended[k] = nil
	}
	c.msgs.ended = c.msgs.ended[:0]
}

// overdue ends requests whose own limits are over: receives that no message has met alone, others with the communicator.
func (c *Comm) overdue(now time.Time) {
	for _, r := range c.lateRequests(now) {
		if r.call.message() && r.msg == nil {
			continue // takeIn has yet to see it
		}
		err := c.requestTooLate(r, now.Sub(r.began))
		if r.unmet() {
			c.takeBack(r, err)
		} else if c.turn.err == nil {
			c.drop(err)
		}
	}
}

func (c *Comm) lateRequests(now time.Time) (list []*Request) {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	if c.requests.admitted == c.requests.plain {
		return nil
	}
	for _, r := range c.openRequests() {
		if r.admitted && !r.until.IsZero() && !now.Before(r.until) {
			list = append(list, r)
		}
	}
	return list
}

func (c *Comm) requestTooLate(r *Request, waited time.Duration) error {
	switch {
	case !r.call.message():
		return c.tooLate(waited)
	case r.call.Root == AnySource:
		return failf(Timeout, "rank %d gave up after %.1f s in %s; no rank has sent what it takes", c.rank, waited.Seconds(),
			messageText(&r.call))
	}
	return failf(Timeout, "rank %d gave up after %.1f s in %s; waiting for rank %d", c.rank, waited.Seconds(), messageText(&r.call),
		r.call.Root).of(r.call.Root)
}
