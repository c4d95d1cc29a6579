package hccl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"hccl.dev/hccl"
	"hccl.dev/hccl/internal/testkit"
)

// Receives that are begun before the sends, in another order, of messages that are large.
func TestRequestsOfMessages(t *testing.T) {
	over(t, func(t *testing.T) {
		must(t, world(t, 3), func(c *hccl.Comm) error {
			const size = 50000
			var in, out []*hccl.Request
			bufs := make([][]int32, c.Size())
			for k := range c.Size() {
				bufs[k] = make([]int32, size)
				r := new(hccl.Request)
				in = append(in, r)
				if err := hccl.RecvTagged(background, r.On(c), bufs[k], k, int32(k)); err != nil {
					return err
				}
			}
			for k := range c.Size() {
				to := (c.Rank() + k) % c.Size()
				r := new(hccl.Request)
				out = append(out, r)
				data := slices.Repeat([]int32{int32(10*c.Rank() + to)}, size)
				if err := hccl.SendTagged(background, r.On(c), data, to, int32(c.Rank())); err != nil {
					return err
				}
				runtime.GC() // what is sent is pinned, and nobody else holds it
			}
			if err := first(hccl.WaitAll(background, in...), hccl.WaitAll(background, out...)); err != nil {
				return err
			}
			for k := range bufs {
				if err := same(fmt.Sprint("from ", k), bufs[k], slices.Repeat([]int32{int32(10*k + c.Rank())}, size)); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Collectives are done in the order in which they were begun, and beside the program.
func TestRequestsOfCollectives(t *testing.T) {
	over(t, func(t *testing.T) {
		must(t, world(t, 3), func(c *hccl.Comm) error {
			const count = 20
			requests, sums := make([]hccl.Request, count), make([][]int, count)
			for k := range requests {
				sums[k] = []int{k, c.Rank()}
				if err := hccl.AllReduce(background, requests[k].On(c), sums[k], sums[k], hccl.Sum); err != nil {
					return err
				}
			}
			if err := sumOfRanks(c, 1000); err != nil { // after them
				return err
			}
			for k := range requests {
				if err := first(requests[k].Wait(background), requests[k].Wait(background), same("sum", sums[k], []int{3 * k, 3})); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func TestWaitAny(t *testing.T) {
	comms := world(t, 2)
	var one, two hccl.Request
	a, b := make([]int, 1), make([]int, 1)
	c := comms[0]
	if err := first(hccl.RecvTagged(background, one.On(c), a, 1, 1), hccl.RecvTagged(background, two.On(c), b, 1, 2)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(background, shortly)
	defer cancel()
	k, err := hccl.WaitAny(ctx, &one, &two)
	if wantError(t, err, hccl.ErrContext); k != -1 {
		t.Errorf("request %d is over", k)
	}
	if err := hccl.SendTagged(background, comms[1], []int{2}, 0, 2); err != nil {
		t.Fatal(err)
	}
	testkit.Within(t, patience, "the message", func() { k, err = hccl.WaitAny(background, &one, &two) })
	if k != 1 || err != nil || b[0] != 2 {
		t.Errorf("request %d, %v, %v", k, err, b)
	}
	one.Cancel()
	testkit.Within(t, patience, "the cancelled receive", func() { <-one.Done() })
	wantError(t, one.Wait(background), hccl.ErrUsage, "cancelled")
	must(t, comms, func(c *hccl.Comm) error { return sumOfRanks(c, 10) })
}

// A context that ends during the wait aborts the communicator; the error names who had not come.
func TestRequestDeadline(t *testing.T) {
	over(t, func(t *testing.T) {
		comms := world(t, 2)
		var r hccl.Request
		sum := []int{1}
		if err := hccl.AllReduce(background, r.On(comms[0]), sum, sum, hccl.Sum); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(background, shortly)
		defer cancel()
		var err error
		testkit.Within(t, patience, "the wait", func() { err = r.Wait(ctx) })
		if e := wantError(t, err, hccl.ErrContext, "deadline"); !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(e.Ranks, []int{1}) {
			t.Errorf("%v is no deadline, or names %v", err, e.Ranks)
		}
		testkit.Within(t, patience, "the other rank", func() { err = hccl.Recv(background, comms[1], sum, 0) })
		wantError(t, err, hccl.ErrRemote, "rank 0")
	})
}

func TestRequestErrors(t *testing.T) {
	comms := world(t, 2)
	c, buf := comms[0], []int{1}
	var r hccl.Request
	<-r.Done()
	wantError(t, r.Wait(background), hccl.ErrArgument, "has begun no operation")
	wantError(t, hccl.Recv(background, r.On(nil), buf, 1), hccl.ErrArgument, "communicator is nil")
	wantError(t, hccl.Recv(background, r.On(c), buf, 7), hccl.ErrArgument, "rank 7")
	_, err := hccl.WaitAny(background)
	wantError(t, err, hccl.ErrArgument, "no request")
	if err := hccl.Recv(background, r.On(c), buf, 1); err != nil {
		t.Fatal(err)
	}
	wantError(t, hccl.Recv(background, r.On(c), buf, 1), hccl.ErrArgument, "a Request for each")
	comms[1].Abort()
	testkit.Within(t, patience, "the receive", func() { err = r.Wait(background) })
	if e := wantError(t, err, hccl.ErrRemote, "rank 1"); !slices.Equal(e.Ranks, []int{1}) {
		t.Errorf("%v names %v", e, e.Ranks)
	}
}
