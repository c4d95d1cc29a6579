package core

import (
	"time"

	"hccl.dev/hccl/shm"
)

const (
	leaveTime = time.Second            // for calls that are inside to come out
	drainTime = 200 * time.Millisecond // for what was sent to reach the peers' hosts
)

// Finalize waits until everything that was asked of the communicator is done. A non-blocking one only begins to.
func (c *Comm) Finalize() error {
	if !c.blocking {
		schedule(&job{comms: []*Comm{c}, run: func() error { return nil }})
		return errInProgress
	}
	c.drain()
	if e := c.failure.Load(); e != nil {
		return e
	}
	return nil
}

// Destroy leaves the communicator in order: what it sent can still be read by the others, for whom it does not wait.
func (c *Comm) Destroy() error {
	if c.failure.Load() != nil {
		return c.end(shm.Aborted)
	}
	c.drain()
	return c.end(shm.Left)
}

// Abort gives the communicator up. Whoever waits in it, on any thread, returns an error; the other ranks are told.
func (c *Comm) Abort() error { return c.end(shm.Aborted) }

func (c *Comm) end(how shm.State) error {
	if c.closing.Swap(true) {
		return failf(InvalidArgument, "the communicator is being destroyed or aborted by another thread")
	}
	c.tellState(how)
	if c.seg != nil {
		c.seg.SetState(how)
		c.seg.Raise(c.seg.Self(), shm.WhyClose)
		why := shm.WhyLeft
		if how == shm.Aborted {
			why = shm.WhyAbort
		}
		for i := range c.seg.Size() {
			if i != c.seg.Self() && c.net == nil {
				c.seg.Raise(i, why)
			}
		}
	}
	c.handle.Ready(c.rank, c.n, nil) // no thread is on the C path after this
	c.drain()
	if !c.quiet(leaveTime) {
		c.log.Warn("communicator %s: a call on another thread did not return within %v; its memory is kept", c.label(), leaveTime)
		unregister(c)
		return nil
	}
	c.forget()
	return nil
}

// quiet waits until no call is inside, at most d.
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

// forget releases all that the communicator holds. No call is inside.
func (c *Comm) forget() {
	unregister(c)
	c.releaseMemory()
	for _, cancel := range c.cancels {
		cancel()
	}
	c.cancels = nil
	if c.net != nil {
		c.net.Close(drainTime)
	}
	if c.hot != nil {
		c.hot.Free()
	}
	if c.seg != nil {
		c.seg.Close()
	}
}

// AsyncError is the state of the communicator: nil, errInProgress while jobs are queued, or the fault.
func (c *Comm) AsyncError() error {
	if e := c.failure.Load(); e != nil {
		return e
	}
	if c.busy() {
		return errInProgress
	}
	if c.seg == nil {
		return nil
	}
	c.audit()
	if f, ok := c.seg.Fault(); ok {
		return c.break_(c.faultError(&f))
	}
	if c.anyGone.Load() {
		for r := range c.n {
			if c.gone[r].Load() == goneDead && c.seg.State(r) == shm.Live {
				return c.break_(failf(RemoteError, "rank %d is gone: its process has ended; rank %d noticed", r, c.rank))
			}
		}
	}
	return nil
}
