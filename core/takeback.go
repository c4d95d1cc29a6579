package core

import (
	"time"

	"hccl.dev/hccl/internal/coll"
)

// Taking requests back. A receive that no message has met is ended by this rank alone, whether the pump has it or it still stands
// behind jobs. Anything else may have begun on other ranks.

// Cancel takes a receive back that no message has met; it then ends with an error. Anything else goes on as if nothing had been said.
func (r *Request) Cancel() {
	c := r.comm
	if c.enter() != nil {
		return
	}
	scheduler.mu.Lock()
	switch {
	case r.over:
	case r.queued():
		c.finishRequest(r, r.cancelled())
	default:
		c.requests.cancels = append(c.requests.cancels, r)
		c.fresh.Store(true)
	}
	scheduler.mu.Unlock()
	c.ringSelf()
	c.leave()
}

func (r *Request) cancelled() error {
	return failf(InvalidUsage, "rank %d: the receive was cancelled before a message had met it", r.comm.rank)
}

// queued reports whether r is a receive that stands behind jobs. The scheduler's lock is held.
func (r *Request) queued() bool { return !r.admitted && !r.over && r.call.Func == coll.Recv }

// watchOver ends r when its own limit is over while it still stands behind jobs, where nobody looks at it.
func (r *Request) watchOver(limit time.Duration) {
	if limit > 0 {
		r.timer = time.AfterFunc(limit, r.lapse)
	}
}

// lapse ends a receive alone. Anything else is an operation that the others may have begun, so the communicator fails with it.
func (r *Request) lapse() {
	c := r.comm
	err := failf(Timeout, "rank %d gave up after %.1f s: %s still stands behind work that is queued on streams", c.rank,
		time.Since(r.began).Seconds(), requestText(&r.call))
	scheduler.mu.Lock()
	waits := !r.admitted && !r.over
	if r.queued() {
		c.finishRequest(r, err)
		waits = false
	}
	scheduler.mu.Unlock()
	if waits {
		c.failRequests(c.break_(err))
	}
}
