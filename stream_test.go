package hccl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl"
	"hccl.dev/hccl/internal/testkit"
)

// gate is a function that holds a stream up until it is opened.
func gate(s *hccl.Stream) (open func()) {
	opened := make(chan struct{})
	s.Go(func() error { <-opened; return nil })
	return func() { close(opened) }
}

// Operations begin in the order of their calls and return at once; a call outside the stream comes after them.
func TestStreamOrder(t *testing.T) {
	over(t, func(t *testing.T) {
		must(t, world(t, 3), func(c *hccl.Comm) error {
			var s hccl.Stream
			open := gate(&s)
			sums := [][]int{{1}, {2}, {3}}
			for _, x := range sums {
				if err := hccl.AllReduce(background, s.On(c), x, x, hccl.Sum); err != nil {
					return err
				}
			}
			if s.Idle() || sums[0][0] != 1 {
				return fmt.Errorf("the stream did not wait: %v", sums)
			}
			open()
			if err := sumOfRanks(c, 1000); err != nil {
				return err
			}
			return first(s.Synchronize(background), same("sums", slices.Concat(sums...), []int{3, 6, 9}))
		})
	})
}

// All operations on a stream, with the collector at work: their slices stay where they are.
func TestStreamOperations(t *testing.T) {
	must(t, world(t, 3), func(c *hccl.Comm) error {
		var s hccl.Stream
		for k := range 50 {
			in, out := make([]float32, 3000), make([]float32, 9000)
			for i := range in {
				in[i] = float32(c.Rank() + k)
			}
			part, back := make([]float32, 1000), make([]float32, 3000)
			err := first(hccl.AllGather(background, s.On(c), in, out), hccl.ReduceScatter(background, s.On(c), in, part, hccl.Max),
				hccl.AllGatherV(background, s.On(c), part, back, []int{1000, 1000, 1000}))
			if err != nil {
				return err
			}
			s.Go(func() error {
				return first(same("gathered", []float32{out[0], out[8999]}, []float32{float32(k), float32(k + 2)}),
					same("scattered", back, slices.Repeat([]float32{float32(k + 2)}, 3000)))
			})
			runtime.GC()
		}
		return s.Synchronize(background)
	})
}

// A group on two streams, in which one goroutine holds both ranks and messages cross.
func TestStreamGroup(t *testing.T) {
	over(t, func(t *testing.T) {
		comms := world(t, 2)
		var a, b hccl.Stream
		in, got := [][]int{{7}, {8}}, [][]int{{0}, {0}}
		open := gate(&b)
		err := hccl.Group(background, func(g *hccl.Calls) error {
			for k, s := range []*hccl.Stream{&a, &b} {
				c := comms[k]
				if err := first(hccl.Send(background, g.OnStream(s, c), in[k], 1-k), hccl.Recv(background, g.OnStream(s, c), got[k], 1-k)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || a.Idle() {
			t.Fatalf("%v; the group did not wait for the other stream", err)
		}
		open()
		if err := first(a.Synchronize(background), b.Synchronize(background), same("got", slices.Concat(got...), []int{8, 7})); err != nil {
			t.Error(err)
		}
	})
}

func TestEvents(t *testing.T) {
	var a, b hccl.Stream
	var never, begun, reached hccl.Event
	<-never.Done()
	begun.Record(&a)
	open := gate(&a)
	var order []string
	a.Go(func() error { order = append(order, "a"); return nil })
	reached.Record(&a)
	b.Wait(&reached)
	b.Go(func() error { order = append(order, "b"); return nil })
	select {
	case <-reached.Done():
		t.Error("the event was reached while its stream is held up")
	default:
	}
	_, err := reached.Since(&begun)
	wantError(t, err, hccl.ErrUsage, "has not been reached yet")
	open()
	testkit.Within(t, patience, "the event", func() { <-reached.Done() })
	if err := b.Synchronize(background); err != nil || strings.Join(order, "") != "ab" {
		t.Errorf("%v, order %v", err, order)
	}
	if d, err := reached.Since(&begun); err != nil || d <= 0 {
		t.Errorf("%v apart, %v", d, err)
	}
	_, err = reached.Since(&never)
	wantError(t, err, hccl.ErrArgument, "never recorded")
}

// Errors of operations, functions and panics come out once, where the stream is waited for.
func TestStreamErrors(t *testing.T) {
	over(t, func(t *testing.T) {
		mine := errors.New("of the program")
		for r, err := range each(t, world(t, 2), func(c *hccl.Comm) error {
			var s hccl.Stream
			buf := make([]int, 1+c.Rank())
			s.Go(func() error { return mine })
			s.Go(func() error { panic("of the program") })
			if err := hccl.AllReduce(background, s.On(c), buf, buf, hccl.Sum); err != nil {
				return err
			}
			err := s.Synchronize(background)
			if again := s.Synchronize(background); !errors.Is(again, mine) {
				t.Errorf("the function's error: %v", again)
			}
			s.Go(func() error { panic("of the program") })
			if e := s.Synchronize(background); e == nil || !strings.Contains(e.Error(), "panicked: of the program") {
				t.Errorf("the function's panic: %v", e)
			}
			if again := s.Synchronize(background); again != nil {
				t.Errorf("told again: %v", again)
			}
			wantError(t, hccl.AllReduce(background, s.On(c), buf, buf, hccl.Sum), hccl.ErrUsage, "disagree")
			return err
		}) {
			if e := wantError(t, err, hccl.ErrUsage, "disagree"); !slices.Contains(e.Ranks, 1-r) {
				t.Errorf("rank %d: %v names %v", r, e, e.Ranks)
			}
		}
	})
}

// A context that ends during Synchronize aborts what the stream waits in; the error names who had not come.
func TestStreamDeadline(t *testing.T) {
	over(t, func(t *testing.T) {
		comms := world(t, 2)
		var s hccl.Stream
		buf := make([]float32, 100000)
		for range 3 {
			if err := hccl.Recv(background, s.On(comms[0]), buf, 1); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(background, shortly)
		defer cancel()
		var err error
		testkit.Within(t, patience, "the wait", func() { err = s.Synchronize(ctx) })
		e := wantError(t, err, hccl.ErrContext, "context deadline exceeded", "aborted")
		if !errors.Is(err, context.DeadlineExceeded) || !slices.Equal(e.Ranks, []int{1}) {
			t.Errorf("%v is no deadline, or names %v", err, e.Ranks)
		}
		testkit.Within(t, patience, "the other rank", func() { err = hccl.Send(background, comms[1], make([]float32, 1<<20), 0) })
		wantError(t, err, hccl.ErrRemote, "rank 0")
	})
}

// A context that had ended before stops the wait and nothing else; so does one whose stream only waits for a function.
func TestStreamContexts(t *testing.T) {
	comms := world(t, 2)
	var s hccl.Stream
	open := gate(&s)
	ctx, cancel := context.WithCancel(background)
	cancel()
	sum := []int{1}
	wantError(t, hccl.AllReduce(ctx, s.On(comms[0]), sum, sum, hccl.Sum), hccl.ErrContext, "not begun")
	wantError(t, s.Synchronize(ctx), hccl.ErrContext, "not begun")
	limit, cancel := context.WithTimeout(background, shortly)
	defer cancel()
	wantError(t, s.Synchronize(limit), hccl.ErrContext, "held up by a function")
	open()
	if err := s.Synchronize(background); err != nil {
		t.Error(err)
	}
	must(t, comms, func(c *hccl.Comm) error { return sumOfRanks(c, 10) })
}

func TestStreamRefusals(t *testing.T) {
	comms := world(t, 2)
	var s hccl.Stream
	wantError(t, hccl.AllReduce(background, s.On(nil), []int{1}, []int{1}, hccl.Sum), hccl.ErrArgument, "communicator is nil")
	wantError(t, hccl.AllReduce(background, (*hccl.Stream)(nil).On(comms[0]), []int{1}, []int{1}, hccl.Sum), hccl.ErrArgument, "stream is nil")
	wantError(t, hccl.AllReduce(background, s.On(comms[0]), []int{1}, []int{1, 2}, hccl.Sum), hccl.ErrArgument, "send has 1 elements")
	var inside error
	s.Go(func() error { inside = s.Synchronize(background); return nil })
	if err := s.Synchronize(background); err != nil {
		t.Error(err)
	}
	wantError(t, inside, hccl.ErrUsage, "waits for the stream that runs it")
	must(t, comms, func(c *hccl.Comm) error { return sumOfRanks(c, 10) })
}
