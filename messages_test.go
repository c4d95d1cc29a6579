package hccl_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"hccl.dev/hccl"
	"hccl.dev/hccl/internal/testkit"
)

// From whoever sends, with any tag, up to as many elements as there is room for; the status says what came.
func TestRecvMessage(t *testing.T) {
	over(t, func(t *testing.T) {
		must(t, world(t, 4), func(c *hccl.Comm) error {
			if c.Rank() > 0 {
				return hccl.SendTagged(background, c, slices.Repeat([]int16{int16(c.Rank())}, c.Rank()), 0, int32(10*c.Rank()))
			}
			var seen []int
			for range c.Size() - 1 {
				buf, st := make([]int16, 5), hccl.Status{}
				if err := hccl.RecvMessage(background, c, buf, hccl.AnySource, hccl.AnyTag, &st); err != nil {
					return err
				}
				r := int(st.Source)
				if st.Tag != int32(10*r) || st.Bytes != uint64(2*r) || buf[r-1] != int16(r) || buf[r] != 0 {
					t.Errorf("%+v came with %v", st, buf)
				}
				seen = append(seen, r)
			}
			slices.Sort(seen)
			return same("senders", seen, []int{1, 2, 3})
		})
	})
}

// In a group on a stream the status is filled when the stream has come so far.
func TestRecvMessageOnStream(t *testing.T) {
	must(t, world(t, 2), func(c *hccl.Comm) error {
		var s hccl.Stream
		var st hccl.Status
		other, got := 1-c.Rank(), make([]uint16, 3)
		err := hccl.Group(background, func(g *hccl.Calls) error {
			return first(hccl.SendTagged(background, g.OnStream(&s, c), []uint16{9}, other, 7),
				hccl.RecvMessage(background, g.OnStream(&s, c), got, hccl.AnySource, 7, &st))
		})
		if err := first(err, s.Synchronize(background)); err != nil {
			return err
		}
		if st != (hccl.Status{Source: int32(other), Tag: 7, Bytes: 2}) {
			t.Errorf("status %+v", st)
		}
		return same("message", got, []uint16{9, 0, 0})
	})
}

func TestMessageRefusals(t *testing.T) {
	comms := world(t, 2)
	c, buf := comms[0], []int{1}
	wantError(t, hccl.SendTagged(background, c, buf, 1, -1), hccl.ErrArgument, "tag -1 is negative")
	wantError(t, hccl.RecvTagged(background, c, buf, 1, hccl.AnyTag), hccl.ErrArgument, "only RecvMessage takes AnyTag")
	wantError(t, hccl.Recv(background, c, buf, hccl.AnySource), hccl.ErrArgument, "rank -1 does not exist")
	wantError(t, hccl.RecvMessage(background, c, buf, 2, 0, nil), hccl.ErrArgument, "rank 2 does not exist")
	wantError(t, hccl.RecvMessage(background, c, buf, 1, -2, nil), hccl.ErrArgument, "tag -2 is negative")
	must(t, comms, func(c *hccl.Comm) error { return sumOfRanks(c, 10) })
}

// Bools and bits.
func TestBits(t *testing.T) {
	must(t, world(t, 2), func(c *hccl.Comm) error {
		one := c.Rank() == 0
		for _, k := range []struct {
			op   hccl.Op
			bits uint16
			is   bool
		}{{hccl.And, 2, false}, {hccl.Or, 7, true}, {hccl.Xor, 5, true}, {hccl.Sum, 9, true}, {hccl.Prod, 18, false}} {
			bits, truth := []uint16{[]uint16{6, 3}[c.Rank()]}, []bool{one, true}
			if err := first(hccl.AllReduce(background, c, bits, bits, k.op), hccl.AllReduce(background, c, truth, truth, k.op)); err != nil {
				return err
			}
			if bits[0] != k.bits || truth[0] != k.is || truth[1] != (k.op != hccl.Xor) {
				t.Errorf("%v of 6 and 3 is %d; of true and false, and of true and true, %v", k.op, bits[0], truth)
			}
		}
		x := []float32{1}
		wantError(t, hccl.AllReduce(background, c, x, x, hccl.And), hccl.ErrArgument)
		wantError(t, hccl.AllReduce(background, c, []bool{one}, []bool{one}, hccl.Avg), hccl.ErrArgument)
		return sumOfRanks(c, 3)
	})
}

// A barrier ends when all have come, and names those that have not.
func TestBarrier(t *testing.T) {
	over(t, func(t *testing.T) {
		comms := world(t, 3)
		must(t, comms, func(c *hccl.Comm) error {
			var s hccl.Stream
			return first(hccl.Barrier(background, c), hccl.Barrier(background, s.On(c)), s.Synchronize(background))
		})
		ctx, cancel := context.WithTimeout(background, 5*shortly)
		defer cancel()
		var err error
		testkit.Within(t, patience, "the barrier", func() { err = hccl.Barrier(ctx, comms[0]) })
		if e := wantError(t, err, hccl.ErrContext, "deadline", "barrier"); !slices.Equal(e.Ranks, []int{1, 2}) {
			t.Errorf("%v names %v", e, e.Ranks)
		}
	})
}

// A limit of the communicator ends what stands still, also if it is set while that waits.
func TestLimit(t *testing.T) {
	comms := world(t, 2)
	c := comms[0]
	if d := c.Limit(); d != 0 {
		t.Errorf("the limit is %v at first", d)
	}
	time.AfterFunc(shortly/10, func() { c.SetLimit(shortly) })
	var err error
	testkit.Within(t, patience, "the limit", func() { err = hccl.Recv(background, c, []int{1}, 1) })
	if e := wantError(t, err, hccl.ErrTimeout); !slices.Equal(e.Ranks, []int{1}) {
		t.Errorf("%v names %v", e, e.Ranks)
	}
	if d := c.Limit(); d != shortly {
		t.Errorf("the limit is %v", d)
	}
}
