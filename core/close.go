package core

import (
	"time"

	"hccl.dev/hccl/shm"
)

const (
	leaveTime   = time.Second            // for calls that are inside to come out
	drainTime   = 700 * time.Millisecond // for what was sent to reach the peers' hosts: destroy returns within a second
	abandonTime = 100 * time.Millisecond // the same where the communicator is given up
)

// Finalize waits until everything that was asked of the communicator is done. A non-blocking one only begins to.
func (c *Comm) Finalize() error {
	if !c.blocking {
		last := c.lastRequest()
		schedule(&job{comms: []*Comm{c}, pending: true, run: func() { c.drainRequests(last) }})
		return errInProgress
	}
	c.drain()
	c.drainRequests(c.lastRequest())
	if e := c.failure.Load(); e != nil {
		return e
	}
	return nil
}

// Destroy leaves the communicator in order: what it sent can still be read by the others, for whom it does not wait. One that is
// still being made is given up: ranks that may never come are not waited for.
func (c *Comm) Destroy() error {
	if c.failure.Load() != nil || c.stage.Load() == making {
		return c.end(shm.Followed)
	}
	c.drain()
	c.leaving.Store(true)
	return c.end(shm.Left)
}

// Abort gives the communicator up. Whoever waits in it, on any thread, returns an error; the other ranks are told.
func (c *Comm) Abort() error {
	if c.failure.Load() != nil {
		return c.end(shm.Followed)
	}
	return c.end(shm.Aborted)
}

func (c *Comm) end(how shm.State) error {
	if c.closing.Swap(true) {
		return failf(InvalidArgument, "the communicator is being destroyed or aborted by another thread")
	}
	close(c.shut)
	before := c.stage.Swap(closed)
	if before == made {
		c.bow(how)
		c.handle.Ready(c.rank, c.n, nil) // no thread is on the C path after this
		if c.hot.ClaimAny() {            // whose thread is refused, and others may wait for its lock
			c.abandon()
		}
	}
	c.withdraw()
	if !c.quiet(leaveTime) {
		c.log.Warn("communicator %s: a call on another thread did not return within %v; its memory is kept", c.label(), leaveTime)
		unregister(c)
		return nil
	}
	unregister(c)
	if before == made {
		c.takeLeave()
		c.release()
	}
	return nil
}

// quiet waits until no call and no job is inside, at most d. A job may go on with other communicators.
func (c *Comm) quiet(d time.Duration) bool {
	end := time.Now().Add(d)
	for k := 0; c.inside.Load() > 0; k++ {
		if time.Now().After(end) {
			return false
		}
		if k < yields {
			shm.Yield()
		} else {
			time.Sleep(100 * time.Microsecond)
		}
	}
	return true
}

// release gives back all that the communicator holds. No call is inside.
func (c *Comm) release() {
	c.releaseMemory()
	for _, cancel := range c.cancels {
		cancel()
	}
	c.cancels = nil
	if c.net != nil {
		drain := drainTime
		if c.seg == nil || c.seg.State(c.seg.Self()) != shm.Left {
			drain = abandonTime
		}
		c.net.Close(drain)
		pool.Leave(user{c})
	}
	if c.hot != nil {
		c.hot.Free()
	}
	if c.near != nil {
		c.near.Close()
	}
	if c.seg != nil {
		c.seg.Close()
	}
}

// AsyncError is the state of the communicator: nil, errInProgress while it is being made or jobs are queued, or the fault.
func (c *Comm) AsyncError() error {
	if e := c.failure.Load(); e != nil {
		return e
	}
	if c.busy() || c.stage.Load() == making {
		return errInProgress
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	if c.seg == nil {
		return nil
	}
	c.audit()
	if f, ok := c.seg.Fault(); ok {
		return c.break_(c.faultError(&f))
	}
	if c.anyGone.Load() {
		for r := range c.n {
			if c.gone[r].Load() == goneDead && c.seg.State(r) <= shm.Live { // absent in a mirror
				return c.break_(failf(RemoteError, "rank %d is gone: its process has ended; rank %d noticed", r, c.rank).of(r))
			}
		}
	}
	return nil
}
