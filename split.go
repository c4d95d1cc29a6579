package hccl

import (
	"context"
	"math"

	"hccl.dev/hccl/core"
)

// NoColor is the color of a rank that gets no communicator from a Split.
const NoColor = core.NoColor

// Split divides the communicator: ranks that give the same color, from 0, get one of their own, in the order of their keys, and of
// their ranks where keys are equal. All ranks must call it. With NoColor the answer is nil. The communicator itself stays, unless
// ctx ends while ranks wait: that aborts it as well.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	if err := c.usable(ctx); err != nil {
		return nil, err
	}
	if color < math.MinInt32 || color > math.MaxInt32 || key < math.MinInt32 || key > math.MaxInt32 {
		return nil, argumentf("Split: color %d and key %d: a color is NoColor or 0 to %d, a key has 32 bits", color, key, math.MaxInt32)
	}
	spec := &core.SplitSpec{ID: numbers.Add(1), Handle: core.Bare{}, Color: int32(color), Key: int32(key), Blocking: true}
	err := limited(ctx, func() { c.giveUpWith(ctx, spec.ID) }, func() error {
		return core.Enqueue([]core.Item{{Comm: c.core, Split: spec}})
	})
	switch {
	case err != nil:
		return nil, c.outcome(err)
	case color == NoColor:
		return nil, nil
	}
	child := core.Find(spec.ID)
	if child == nil {
		return nil, c.outcome(errLate)
	}
	return &Comm{core: child, rank: child.Rank(), n: child.Size()}, nil
}

// giveUpWith gives the communicator up together with the one that is being split off it.
func (c *Comm) giveUpWith(ctx context.Context, child uint64) {
	c.giveUp(ctx)
	if k := core.Find(child); k != nil {
		_ = k.Abort() // fails only where it is over already
	}
}
