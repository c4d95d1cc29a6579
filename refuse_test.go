package hccl_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl"
	"hccl.dev/hccl/internal/testkit"
)

// What does not fit is refused at once, with the length that is needed; nothing has begun, so the communicator works on.
func TestRefusals(t *testing.T) {
	comms := world(t, 3)
	two, three, six := make([]float32, 2), make([]float32, 3), make([]float32, 6)
	bg := background
	for what, k := range map[string]struct {
		call func(c *hccl.Comm) error
		says []string
	}{
		"all-reduce": {func(c *hccl.Comm) error {
			return hccl.AllReduce(bg, c, two, three, hccl.Sum)
		}, []string{"2", "3", "same number"}},
		"reduce": {func(c *hccl.Comm) error {
			return hccl.Reduce(bg, c, two, three, hccl.Sum, c.Rank())
		}, []string{"same number"}},
		"root": {func(c *hccl.Comm) error {
			return hccl.Broadcast(bg, c, two, 3)
		}, []string{"root 3", "3 ranks"}},
		"negative root": {func(c *hccl.Comm) error {
			return hccl.Reduce(bg, c, two, two, hccl.Sum, -1)
		}, []string{"root -1"}},
		"all-gather": {func(c *hccl.Comm) error {
			return hccl.AllGather(bg, c, three, six)
		}, []string{"recv has 6", "needs 9"}},
		"reduce-scatter": {func(c *hccl.Comm) error {
			return hccl.ReduceScatter(bg, c, three, two, hccl.Sum)
		}, []string{"send has 3", "needs 6"}},
		"all-to-all": {func(c *hccl.Comm) error {
			return hccl.AlltoAll(bg, c, two, two[:2:2])
		}, []string{"2 elements cannot be divided among 3"}},
		"all-to-all unequal": {func(c *hccl.Comm) error {
			return hccl.AlltoAll(bg, c, three, six)
		}, []string{"send has 3", "recv 6"}},
		"gather": {func(c *hccl.Comm) error {
			return hccl.Gather(bg, c, two, two, c.Rank())
		}, []string{"needs 6"}},
		"scatter": {func(c *hccl.Comm) error {
			return hccl.Scatter(bg, c, two, two, c.Rank())
		}, []string{"needs 6"}},
		"peer": {func(c *hccl.Comm) error {
			return hccl.Send(bg, c, two, 3)
		}, []string{"rank 3", "3 ranks"}},
		"negative peer": {func(c *hccl.Comm) error {
			return hccl.Recv(bg, c, two, -1)
		}, []string{"rank -1"}},
		"number of counts": {func(c *hccl.Comm) error {
			return hccl.AllGatherV(bg, c, two, six, []int{2, 4})
		}, []string{"2 counts", "3 ranks"}},
		"no counts": {func(c *hccl.Comm) error {
			return hccl.AlltoAllV(bg, c, two, nil, six, []int{2, 2, 2})
		}, []string{"0 counts of send"}},
		"negative count": {func(c *hccl.Comm) error {
			return hccl.AllGatherV(bg, c, two, six, []int{2, 5, -1})
		}, []string{"count -1", "rank 2"}},
		"counts against recv": {func(c *hccl.Comm) error {
			return hccl.AllGatherV(bg, c, two, three, []int{2, 2, 2})
		}, []string{"recv has 3", "ask for 6"}},
		"counts against send": {func(c *hccl.Comm) error { return hccl.AlltoAllV(bg, c, three, []int{1, 0, 0}, six, []int{2, 2, 2}) },
			[]string{"send has 3", "ask for 1"}},
		"reduce-scatter-v": {func(c *hccl.Comm) error {
			return hccl.ReduceScatterV(bg, c, six, six, []int{2, 2, 2}, hccl.Sum)
		}, []string{"recv has 6", "ask for 2"}},
		"overlap": {func(c *hccl.Comm) error {
			return hccl.AllReduce(bg, c, six[:4], six[1:5], hccl.Sum)
		}, []string{"overlap"}},
		"factor of a type": {func(c *hccl.Comm) error {
			return hccl.AllReduce(bg, c, two, two, hccl.PreMulSum(2))
		}, []string{"int64", "float32"}},
		"color": {func(c *hccl.Comm) error {
			return second(c.Split(bg, -2, 0))
		}, []string{"colour -2", "rank 0"}},
		"key": {func(c *hccl.Comm) error {
			return second(c.Split(bg, 0, 1<<40))
		}, []string{"key 1099511627776"}},
		"a group": {func(c *hccl.Comm) error {
			return carelessGroup(c, two)
		}, []string{"rank 9"}},
	} {
		t.Run(what, func(t *testing.T) {
			for _, err := range each(t, comms, k.call) {
				wantError(t, err, hccl.ErrArgument, k.says...)
			}
		})
	}
	must(t, comms, func(c *hccl.Comm) error { return first(c.Err(), sumOfRanks(c, 10)) })
}

func second(_ *hccl.Comm, err error) error { return err }

// carelessGroup drops the error of an operation within; its Group remembers.
func carelessGroup(c *hccl.Comm, buf []float32) error {
	return hccl.Group(background, func(g *hccl.Calls) error {
		_ = hccl.Send(background, g.On(c), buf, 9)
		return hccl.Recv(background, g.On(c), buf, 0)
	})
}

func TestGroupsThatDoNothing(t *testing.T) {
	c := world(t, 1)[0]
	var kept hccl.Caller
	if err := hccl.Group(background, func(g *hccl.Calls) error { kept = g.On(c); return nil }); err != nil {
		t.Error(err)
	}
	wantError(t, hccl.Send(background, kept, []byte{1}, 0), hccl.ErrArgument, "its group is over")
	why := errors.New("on second thoughts")
	err := hccl.Group(background, func(g *hccl.Calls) error { return first(hccl.Send(background, g.On(c), []byte{1}, 0), why) })
	if err != why {
		t.Errorf("the group's error is %v", err)
	}
}

// The nil of a Split with NoColor, and communicators that are over.
func TestNoCommunicator(t *testing.T) {
	var none *hccl.Comm
	wantError(t, sum1(none), hccl.ErrArgument, "communicator is nil")
	wantError(t, none.Err(), hccl.ErrArgument, "communicator is nil")
	if err := first(none.Close(), none.Abort()); err != nil {
		t.Error(err)
	}
	for _, end := range []func(*hccl.Comm) error{(*hccl.Comm).Close, (*hccl.Comm).Abort} {
		c := world(t, 1)[0]
		if err := first(sum1(c), end(c), end(c), c.Close(), c.Abort()); err != nil {
			t.Error(err)
		}
		wantError(t, sum1(c), hccl.ErrUsage, "aborted or destroyed")
		wantError(t, second(c.Split(background, 0, 0)), hccl.ErrUsage)
		wantError(t, c.Err(), hccl.ErrUsage)
	}
}

func sum1(c *hccl.Comm) error {
	return hccl.AllReduce(background, c, []int{1}, make([]int, 1), hccl.Sum)
}

// Ranks that disagree are both told of both calls.
func TestDisagreement(t *testing.T) {
	over(t, func(t *testing.T) {
		for _, err := range each(t, world(t, 2), func(c *hccl.Comm) error {
			buf := make([]int32, 5+c.Rank())
			return hccl.AllReduce(background, c, buf, buf, hccl.Sum)
		}) {
			if e := wantError(t, err, hccl.ErrUsage, "5 elements", "6 elements"); !slices.Equal(e.Ranks, []int{0, 1}) {
				t.Errorf("%v names %v", err, e.Ranks)
			}
		}
	})
}

func TestBadInits(t *testing.T) {
	id := newID(t)
	for _, k := range [][2]int{{0, 0}, {-1, 2}, {2, 2}, {0, -1}} {
		_, err := hccl.Init(background, id, k[0], k[1])
		wantError(t, err, hccl.ErrArgument, fmt.Sprintf("rank %d does not exist among %d", k[0], k[1]))
	}
	wantError(t, second(hccl.Init(background, hccl.ID{}, 0, 2)), hccl.ErrArgument, "unique id")
	_, err := hccl.InitAll(background, 0)
	wantError(t, err, hccl.ErrArgument)
	testkit.Setenv(t, "HCCL_INIT_TIMEOUT", "0.2")
	e := wantError(t, second(hccl.Init(background, id, 1, 3)), hccl.ErrTimeout, "missing: ranks 0, 2")
	if !slices.Equal(e.Ranks, []int{0, 2}) {
		t.Errorf("%v names %v", e, e.Ranks)
	}
}

// Two ranks with one number.
func TestSameRankTwice(t *testing.T) {
	id := newID(t)
	for _, err := range each(t, make([]*hccl.Comm, 2), func(*hccl.Comm) error {
		return second(hccl.Init(background, id, 1, 2))
	}) {
		if e := wantError(t, err, hccl.ErrUsage, "rank 1"); !slices.Equal(e.Ranks, []int{1}) {
			t.Errorf("%v names %v", e, e.Ranks)
		}
	}
}

func TestIDsTravel(t *testing.T) {
	id := newID(t)
	b, err := json.Marshal(map[string]hccl.ID{"id": id})
	var back map[string]hccl.ID
	if err = first(err, json.Unmarshal(b, &back)); err != nil || back["id"] != id {
		t.Errorf("by JSON: %v", err)
	}
	raw, _ := id.MarshalBinary()
	var again hccl.ID
	if err := again.UnmarshalBinary(raw); err != nil || again != id {
		t.Errorf("by bytes: %v", err)
	}
	if parsed, err := hccl.ParseID(id.Text()); err != nil || parsed != id {
		t.Errorf("by text: %v", err)
	}
	if secret := id.Text()[32:64]; strings.Contains(fmt.Sprint(id), secret) || fmt.Sprint(id) == fmt.Sprint(newID(t)) {
		t.Errorf("%v tells the secret, or nothing", id)
	}
	for _, text := range []string{"", "12", strings.Repeat("x", 256)} {
		_, err := hccl.ParseID(text)
		wantError(t, err, hccl.ErrArgument, "text of an id")
	}
	wantError(t, again.UnmarshalBinary(raw[1:]), hccl.ErrArgument, "127")
}

func TestKindsAreErrors(t *testing.T) {
	seen := map[string]bool{}
	for k := hccl.ErrInternal; k <= hccl.ErrContext; k++ {
		if text := k.Error(); seen[text] || !strings.HasPrefix(text, "hccl: ") || strings.Contains(text, "unknown") {
			t.Errorf("kind %d says %q", k, text)
		} else {
			seen[text] = true
		}
	}
	if !strings.Contains(hccl.Kind(0).Error(), "unknown") || !strings.Contains(hccl.Kind(200).Error(), "unknown") {
		t.Error("kinds that are none pass for some")
	}
}
