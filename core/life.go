package core

import "hccl.dev/hccl/shm"

// A communicator's stages. Whoever takes it out of making or made releases what it holds, so that this happens once:
//
//	making ─► made ─► closed    Abort or Destroy releases
//	making ─► over ─► closed    the making failed: its thread has released; a non-blocking one stays to be asked for its error
//	making ─► closed            Abort came first: the thread that makes it sees that and releases
const (
	making = iota
	made
	over
	closed
)

// refusal says why nothing can be done with a communicator that is not made.
func (c *Comm) refusal() error {
	if c.stage.Load() == closed {
		return failf(InvalidUsage, "the communicator is being aborted or destroyed; no operation can begin on it")
	}
	if e := c.failure.Load(); e != nil {
		return e
	}
	return failf(InvalidUsage, "the communicator is still being made: wait until the call that makes it, or the group that the call "+
		"is in, has returned, and ncclCommGetAsyncError says ncclSuccess")
}

// aborted ends waits during init.
func (c *Comm) aborted() error {
	if c.closing.Load() {
		return failf(InvalidUsage, "rank %d: the communicator was aborted while it was being made", c.rank)
	}
	return nil
}

// build makes the communicator: connect joins the ranks. Abort and the queries may come meanwhile, from other threads.
func (c *Comm) build(connect func() error) error {
	c.inside.Add(1)
	defer c.leave()
	err := guarded(connect)
	if err == nil {
		c.tellRings()
		err = c.finish()
		c.phases.end("the rest")
	}
	if err == nil {
		return nil
	}
	return c.unbuild(err)
}

// unbuild ends a making that came to nothing. It returns what the caller of a blocking one is told.
func (c *Comm) unbuild(err error) error {
	if stopped := c.aborted(); stopped != nil {
		err = stopped
	}
	e := c.break_(err)
	c.bow(shm.Aborted)
	c.stage.CompareAndSwap(making, over)
	c.release()
	if c.awaited {
		unregister(c)
	}
	return e
}

// bow tells the other ranks how this one goes, where they are connected already.
func (c *Comm) bow(how shm.State) {
	if c.seg == nil || c.ports == nil {
		return
	}
	if e := c.failure.Load(); e != nil && how >= shm.Aborted {
		how = how.By(e.Ranks)
	}
	c.tellState(how)
	c.seg.SetState(how)
	if c.near != nil {
		c.near.SetState(how)
	}
	c.seg.Raise(c.seg.Self(), shm.WhyClose)
	why := shm.WhyLeft
	if how >= shm.Aborted {
		why = shm.WhyAbort
	}
	for i := range c.seg.Size() {
		if i != c.seg.Self() && c.net == nil {
			c.seg.Raise(i, why)
		}
	}
}

// guarded runs a part of a job on a goroutine of ours: a panic there would end the host's process, since no export catches it.
func guarded(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = defect(p)
		}
	}()
	return run()
}
