package core

import "time"

// There are two limits. A communicator has one for how long an operation may stand still: HCCL_TIMEOUT, until SetLimit changes it. A
// call may have its own, for the whole of it from when it begins, instead of that. Both are looked at only while the call waits, so
// that what moves is not ended just before its end.

// NoLimit is the limit of a call that may take for ever.
const NoLimit = time.Duration(-1)

// SetLimit sets how long an operation may stand still from now on, also one that is under way; 0: for ever.
func (c *Comm) SetLimit(d time.Duration) { c.patience.Store(int64(max(d, 0))) }

// Limit is what SetLimit has set, or HCCL_TIMEOUT.
func (c *Comm) Limit() time.Duration { return time.Duration(c.patience.Load()) }

// bound takes in the limit of a call. Calls of a group end together, so the shortest is that of all.
func (b *batch) bound(limit time.Duration) {
	switch {
	case limit < 0 && b.limit == 0:
		b.limit = NoLimit
	case limit > 0:
		b.limit = NoLimit
		if b.until.IsZero() {
			b.began = time.Now()
		}
		if end := b.began.Add(limit); b.until.IsZero() || end.Before(b.until) {
			b.until = end
		}
	}
}

// expire ends what has run out of its own limit. Receives that no message has met are only taken back; anything else has begun, also
// on other ranks, and is the communicator's failure.
func (c *Comm) expire(waited time.Duration) error {
	e := c.tooLate(waited)
	if c.turn.left > 0 || !c.msgs.withdraw(c.turn.live) {
		return e
	}
	c.turn.late = e
	return nil
}

// late reports whether the calls have taken as long as they may.
func (b *batch) late(now time.Time) bool { return !b.until.IsZero() && !now.Before(b.until) }

// pause is how long to sleep before looking again.
func (b *batch) pause() time.Duration {
	if b.until.IsZero() {
		return napTime
	}
	return min(max(time.Until(b.until), 0), napTime)
}
