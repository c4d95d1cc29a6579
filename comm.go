package hccl

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"hccl.dev/hccl/core"
)

// Comm is one rank's part in a communicator. Its methods may be called from any goroutine.
type Comm struct {
	core    *core.Comm
	rank, n int

	end   sync.Once                       // Close, Abort or the end of a context, whichever comes first
	cause atomic.Pointer[context.Context] // the one whose end aborted it
}

// Rank is this rank's number, from 0.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *Comm) Size() int { return c.n }

// Err tells how the communicator is, without waiting: nil while it is sound, else what broke or ended it. A rank that is gone shows
// here also while nobody waits for it.
func (c *Comm) Err() error {
	if err := c.usable(context.Background()); err != nil {
		return err
	}
	return c.outcome(c.core.AsyncError())
}

// Close leaves the communicator in order, within a second: what this rank has given the others can still be read. It does not wait
// for them. A communicator that has ended already stays so, and that is no error; nor is the nil of
// a Split with NoColor.
func (c *Comm) Close() (err error) {
	if c != nil && c.core != nil {
		c.end.Do(func() { err = failure(c.core.Destroy()) })
	}
	return err
}

// Abort gives the communicator up. Calls that wait in it return an error, here and on the other ranks.
func (c *Comm) Abort() (err error) {
	if c != nil && c.core != nil {
		c.end.Do(func() { err = failure(c.core.Abort()) })
	}
	return err
}

// giveUp aborts because ctx has ended. It returns when the communicator has, also where another is already about that.
func (c *Comm) giveUp(ctx context.Context) {
	c.end.Do(func() {
		c.cause.Store(&ctx)
		_ = c.core.Abort() // fails only where another ends it
	})
}

// outcome gives a result of the core the form of this package, with the context's end as the reason where that was it.
func (c *Comm) outcome(err error) error {
	if err == nil {
		return nil
	}
	if ctx := c.cause.Load(); ctx != nil {
		return ended(*ctx, err)
	}
	return failure(err)
}

// usable refuses a call that cannot begin.
func (c *Comm) usable(ctx context.Context) error {
	if c == nil || c.core == nil {
		return argumentf("the communicator is nil: Init makes one, and a Split with NoColor none")
	}
	if ctx.Err() != nil {
		return ended(ctx, nil)
	}
	return nil
}

// limited runs do, in which this rank waits, and has giveUp end it if ctx ends meanwhile.
func limited(ctx context.Context, giveUp func(), do func() error) error {
	if ctx.Done() == nil {
		return do()
	}
	stop := context.AfterFunc(ctx, giveUp)
	err := do()
	if !stop() {
		giveUp() // waits for the one that runs, so that all is over when the call returns
	}
	return err
}

// SetLimit sets how long an operation may stand still from now on, also one that is under way; 0 is for ever. Before it is HCCL_TIMEOUT.
// It is this rank's alone, and holds where a call's context does not end before.
func (c *Comm) SetLimit(d time.Duration) { c.core.SetLimit(d) }

// Limit is what SetLimit has set, or HCCL_TIMEOUT; 0 is for ever.
func (c *Comm) Limit() time.Duration { return c.core.Limit() }
