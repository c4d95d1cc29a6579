package hccl_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"hccl.dev/hccl"
	"hccl.dev/hccl/internal/testkit"
)

// shortly is a limit that is meant to pass.
const shortly = 100 * time.Millisecond

// waits are calls in which rank 0 waits for rank 1 in vain.
var waits = map[string]func(ctx context.Context, c *hccl.Comm) error{
	"small": func(ctx context.Context, c *hccl.Comm) error {
		return hccl.AllReduce(ctx, c, []float32{1}, make([]float32, 1), hccl.Sum)
	},
	"large": func(ctx context.Context, c *hccl.Comm) error {
		return hccl.AllReduce(ctx, c, make([]float32, 100000), make([]float32, 100000), hccl.Sum)
	},
	"recv": func(ctx context.Context, c *hccl.Comm) error { return hccl.Recv(ctx, c, make([]byte, 3), 1-c.Rank()) },
	"send": func(ctx context.Context, c *hccl.Comm) error {
		return hccl.Send(ctx, c, make([]byte, 1<<20), 1-c.Rank())
	},
	"split": func(ctx context.Context, c *hccl.Comm) error {
		_, err := c.Split(ctx, 0, 0)
		return err
	},
	"group": func(ctx context.Context, c *hccl.Comm) error {
		return hccl.Group(ctx, func(g *hccl.Calls) error { return hccl.Recv(ctx, g.On(c), make([]byte, 3), 1-c.Rank()) })
	},
}

// inVain has rank 0 of two wait until a deadline ends that. One that has passed before the call begins only refuses it: it was too short.
func inVain(t *testing.T, wait func(ctx context.Context, c *hccl.Comm) error) (comms []*hccl.Comm, err error) {
	t.Helper()
	for limit := shortly; limit < patience; limit *= 2 {
		comms = world(t, 2)
		ctx, cancel := context.WithTimeout(background, limit)
		testkit.Within(t, patience, "the wait", func() { err = wait(ctx, comms[0]) })
		if cancel(); comms[0].Err() != nil {
			return comms, err
		}
	}
	t.Fatalf("no call begins: %v", err)
	return nil, nil
}

// A deadline ends every wait; the error is the context's and names who was missing, and the other learns who gave up.
func TestDeadline(t *testing.T) {
	over(t, func(t *testing.T) {
		for name, wait := range waits {
			t.Run(name, func(t *testing.T) {
				comms, err := inVain(t, wait)
				e := wantError(t, err, hccl.ErrContext, "context deadline exceeded", "aborted")
				if !errors.Is(err, context.DeadlineExceeded) || name != "split" && !slices.Equal(e.Ranks, []int{1}) {
					t.Errorf("%v is no deadline, or names %v", err, e.Ranks)
				}
				if again := wait(background, comms[0]); !errors.Is(again, context.DeadlineExceeded) {
					t.Errorf("the next call says %v", again)
				}
				testkit.Within(t, patience, "the other rank", func() {
					if err = wait(background, comms[1]); err == nil { // rank 0 had given its part before
						err = wait(background, comms[1])
					}
				})
				if e := wantError(t, err, hccl.ErrRemote, "rank 0"); !slices.Equal(e.Ranks, []int{0}) {
					t.Errorf("%v names %v", e, e.Ranks)
				}
			})
		}
	})
}

func TestCancel(t *testing.T) {
	comms := world(t, 2)
	ctx, cancel := context.WithCancelCause(background)
	why := errors.New("the user has had enough")
	time.AfterFunc(shortly/10, func() { cancel(why) })
	var err error
	testkit.Within(t, patience, "the cancelled call", func() { err = waits["small"](ctx, comms[0]) })
	if wantError(t, err, hccl.ErrContext, why.Error()); !errors.Is(err, why) {
		t.Errorf("%v is not what it was cancelled for", err)
	}
}

// A context that has ended before stops the call and nothing else.
func TestContextThatHasEnded(t *testing.T) {
	comms := world(t, 2)
	ctx, cancel := context.WithCancel(background)
	cancel()
	for name, wait := range waits {
		if err := wait(ctx, comms[0]); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := hccl.InitAll(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("InitAll: %v", err)
	}
	must(t, comms, func(c *hccl.Comm) error { return sumOfRanks(c, 10) })
}

// A context that could end but does not costs nothing but time.
func TestContextThatDoesNotEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	comms, err := hccl.InitAll(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	must(t, comms, func(c *hccl.Comm) error {
		for range 100 {
			sum := []int{1}
			if err := hccl.AllReduce(ctx, c, sum, sum, hccl.Sum); err != nil || sum[0] != 2 {
				return first(err, same("sum", sum, []int{2}))
			}
		}
		half, err := c.Split(ctx, c.Rank(), 0)
		return first(err, half.Close(), c.Close(), c.Close())
	})
	cancel()
	if err := comms[0].Err(); errors.Is(err, context.Canceled) {
		t.Errorf("the context of calls that are over counts: %v", err)
	}
}

// Abort and Close end what waits on another goroutine.
func TestAbortFromOutside(t *testing.T) {
	over(t, func(t *testing.T) {
		for how, end := range map[string]func(*hccl.Comm) error{"abort": (*hccl.Comm).Abort, "destroy": (*hccl.Comm).Close} {
			comms := world(t, 2)
			var wg sync.WaitGroup
			var err error
			wg.Go(func() { err = waits["small"](background, comms[0]) })
			time.AfterFunc(shortly/10, func() { end(comms[0]) })
			testkit.Within(t, patience, "the aborted call", wg.Wait)
			wantError(t, err, hccl.ErrUsage, how)
		}
	})
}

// A context may end at any moment of init and of use: whatever was on its way ends, with an error that is the context's on the rank
// that it hit, and names a rank on the others.
func TestContextEndsAtAnyMoment(t *testing.T) {
	over(t, func(t *testing.T) {
		for k := range 30 {
			ctx, cancel := context.WithTimeout(background, time.Duration(k)*300*time.Microsecond)
			comms, err := hccl.InitAll(ctx, 3)
			if err != nil {
				wantError(t, err, hccl.ErrContext)
				cancel()
				continue
			}
			for r, err := range each(t, comms, func(c *hccl.Comm) (err error) {
				calls := background
				if c.Rank() == 1 {
					calls = ctx
				}
				for buf := make([]float32, 1+500*k); err == nil; {
					err = hccl.AllReduce(calls, c, buf, buf, hccl.Sum)
				}
				c.Abort()
				return err
			}) {
				if r == 1 != errors.Is(err, context.DeadlineExceeded) || r != 1 && !errors.Is(err, hccl.ErrRemote) {
					t.Errorf("rank %d: %v", r, err)
				}
			}
			cancel()
		}
	})
}
