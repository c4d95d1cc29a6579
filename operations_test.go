package hccl_test

import (
	"fmt"
	"testing"

	"hccl.dev/hccl"
)

// value is element i of what rank r gives.
func value(r, i int) int32 { return int32(r*100000 + i) }

func values(r, from, n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = value(r, from+i)
	}
	return s
}

// total is the sum over n ranks of elements from on.
func total(n, from, count int) []int32 {
	s := make([]int32, count)
	for r := range n {
		for i := range s {
			s[i] += value(r, from+i)
		}
	}
	return s
}

// Every collective, with the sizes of the one-shot path and of plans, zero among them, apart and in place.
func TestCollectives(t *testing.T) {
	over(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 3} {
			comms := world(t, n)
			for _, count := range []int{0, 1, 7, 3000, 40000} {
				for name, op := range collectives {
					t.Run(fmt.Sprintf("%s/%d/%d", name, n, count), func(t *testing.T) {
						must(t, comms, func(c *hccl.Comm) error { return op(c, n, count) })
					})
				}
			}
		}
	})
}

var collectives = map[string]func(c *hccl.Comm, n, count int) error{
	"AllReduce": func(c *hccl.Comm, n, count int) error {
		mine, sum := values(c.Rank(), 0, count), make([]int32, count)
		if err := first(hccl.AllReduce(background, c, mine, sum, hccl.Sum), same("sum", sum, total(n, 0, count))); err != nil {
			return err
		}
		return first(hccl.AllReduce(background, c, mine, mine, hccl.Sum), same("in place", mine, sum))
	},
	"Reduce": func(c *hccl.Comm, n, count int) error {
		root := n - 1
		mine, sum := values(c.Rank(), 0, count), []int32(nil)
		if c.Rank() == root {
			sum = make([]int32, count)
		}
		err := hccl.Reduce(background, c, mine, sum, hccl.Sum, root)
		if err == nil && c.Rank() == root {
			err = same("sum", sum, total(n, 0, count))
		}
		if err = first(err, hccl.Reduce(background, c, mine, mine, hccl.Sum, root)); err != nil || c.Rank() != root {
			return err
		}
		return same("in place", mine, sum)
	},
	"Broadcast": func(c *hccl.Comm, n, count int) error {
		buf := values(c.Rank(), 0, count)
		return first(hccl.Broadcast(background, c, buf, n/2), same("broadcast", buf, values(n/2, 0, count)))
	},
	"AllGather": func(c *hccl.Comm, n, count int) error {
		all := make([]int32, n*count)
		if err := first(hccl.AllGather(background, c, values(c.Rank(), 0, count), all), same("all", all, everyone(n, count))); err != nil {
			return err
		}
		own := make([]int32, n*count)
		part := own[c.Rank()*count:][:count]
		copy(part, values(c.Rank(), 0, count))
		return first(hccl.AllGather(background, c, part, own), same("in place", own, all))
	},
	"ReduceScatter": func(c *hccl.Comm, n, count int) error {
		all, part := values(c.Rank(), 0, n*count), make([]int32, count)
		want := total(n, c.Rank()*count, count)
		if err := first(hccl.ReduceScatter(background, c, all, part, hccl.Sum), same("part", part, want)); err != nil {
			return err
		}
		own := all[c.Rank()*count:][:count]
		return first(hccl.ReduceScatter(background, c, all, own, hccl.Sum), same("in place", own, want))
	},
	"AlltoAll": func(c *hccl.Comm, n, count int) error {
		got, want := make([]int32, n*count), []int32{}
		for r := range n {
			want = append(want, values(r, c.Rank()*count, count)...)
		}
		return first(hccl.AlltoAll(background, c, values(c.Rank(), 0, n*count), got), same("parts", got, want))
	},
	"Gather": func(c *hccl.Comm, n, count int) error {
		var all []int32
		if c.Rank() == 0 {
			all = make([]int32, n*count)
		}
		err := hccl.Gather(background, c, values(c.Rank(), 0, count), all, 0)
		if err != nil || c.Rank() != 0 {
			return err
		}
		return same("all", all, everyone(n, count))
	},
	"Scatter": func(c *hccl.Comm, n, count int) error {
		var all []int32
		if c.Rank() == n-1 {
			all = values(7, 0, n*count)
		}
		part := make([]int32, count)
		return first(hccl.Scatter(background, c, all, part, n-1), same("part", part, values(7, c.Rank()*count, count)))
	},
	"AllGatherV": func(c *hccl.Comm, n, count int) error {
		counts, want := rising(n, count), []int32{}
		for r := range n {
			want = append(want, values(r, 0, counts[r])...)
		}
		all := make([]int32, len(want))
		return first(hccl.AllGatherV(background, c, values(c.Rank(), 0, counts[c.Rank()]), all, counts), same("all", all, want))
	},
	"ReduceScatterV": func(c *hccl.Comm, n, count int) error {
		counts := rising(n, count)
		from, length := 0, 0
		for r, k := range counts {
			if r < c.Rank() {
				from += k
			}
			length += k
		}
		part := make([]int32, counts[c.Rank()])
		return first(hccl.ReduceScatterV(background, c, values(c.Rank(), 0, length), part, counts, hccl.Sum),
			same("part", part, total(n, from, len(part))))
	},
	"AlltoAllV": func(c *hccl.Comm, n, count int) error {
		give, take := rising(n, count), make([]int, n) // every rank gives rank k give[k]
		var out, want []int32
		for r := range n {
			out = append(out, values(c.Rank(), 1000*r, give[r])...)
			take[r] = give[c.Rank()]
			want = append(want, values(r, 1000*c.Rank(), take[r])...)
		}
		got := make([]int32, len(want))
		return first(hccl.AlltoAllV(background, c, out, give, got, take), same("parts", got, want))
	},
	"SendRecv": func(c *hccl.Comm, n, count int) error {
		in := make([]int32, count)
		left, right := (c.Rank()+n-1)%n, (c.Rank()+1)%n
		err := hccl.Group(background, func(g *hccl.Calls) error {
			return first(hccl.Send(background, g.On(c), values(c.Rank(), 0, count), right), hccl.Recv(background, g.On(c), in, left))
		})
		return first(err, same("message", in, values(left, 0, count)))
	},
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func everyone(n, count int) (all []int32) {
	for r := range n {
		all = append(all, values(r, 0, count)...)
	}
	return all
}

// rising is one length for each rank: 0, count, 2 count, ...
func rising(n, count int) []int {
	counts := make([]int, n)
	for r := range counts {
		counts[r] = r * count
	}
	return counts
}

type celsius float64
type id int

// All types, declared ones too, and all reductions.
func TestTypesAndReductions(t *testing.T) {
	comms := world(t, 2)
	t.Run("int8", reductions[int8](comms))
	t.Run("uint8", reductions[uint8](comms))
	t.Run("int32", reductions[int32](comms))
	t.Run("uint32", reductions[uint32](comms))
	t.Run("int64", reductions[int64](comms))
	t.Run("uint64", reductions[uint64](comms))
	t.Run("int", reductions[int](comms))
	t.Run("uint", reductions[uint](comms))
	t.Run("float32", reductions[float32](comms))
	t.Run("float64", reductions[float64](comms))
	t.Run("celsius", reductions[celsius](comms))
	t.Run("id", reductions[id](comms))
	t.Run("float16", narrow(comms, hccl.NewFloat16))
	t.Run("bfloat16", narrow(comms, hccl.NewBfloat16))
	t.Run("float8e4m3", narrow(comms, hccl.NewFloat8E4M3))
	t.Run("float8e5m2", narrow(comms, hccl.NewFloat8E5M2))
}

type plain interface {
	~int8 | ~uint8 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint | ~float32 | ~float64
}

// reductions has ranks 0 and 1 combine 4 and 2.
func reductions[T plain](comms []*hccl.Comm) func(t *testing.T) {
	return combine(comms, func(x float32) T { return T(x) })
}

func narrow[T hccl.Element](comms []*hccl.Comm, of func(float32) T) func(t *testing.T) {
	return combine(comms, of)
}

func combine[T hccl.Element](comms []*hccl.Comm, of func(float32) T) func(t *testing.T) {
	return func(t *testing.T) {
		for _, k := range []struct {
			op   hccl.Op
			want float32
		}{{hccl.Op{}, 6}, {hccl.Sum, 6}, {hccl.Prod, 8}, {hccl.Max, 4}, {hccl.Min, 2}, {hccl.Avg, 3}, {hccl.PreMulSum(of(3)), 18}} {
			must(t, comms, func(c *hccl.Comm) error {
				buf := make([]T, 5)
				for i := range buf {
					buf[i] = of(float32(4 - 2*c.Rank()))
				}
				if err := hccl.AllReduce(background, c, buf, buf, k.op); err != nil {
					return err
				}
				for _, v := range buf {
					if v != of(k.want) {
						return fmt.Errorf("%v of 4 and 2 is %v, want %v", k.op, v, of(k.want))
					}
				}
				return nil
			})
		}
	}
}

// Small messages overtake each other by their tags; none waits for its receiver.
func TestTags(t *testing.T) {
	over(t, func(t *testing.T) {
		must(t, world(t, 2), func(c *hccl.Comm) error {
			if c.Rank() == 0 {
				return first(hccl.SendTagged(background, c, []int32{1}, 1, 10), hccl.SendTagged(background, c, []int32{2}, 1, 20),
					hccl.Send(background, c, []int32{3}, 1))
			}
			got := make([]int32, 3)
			return first(hccl.Recv(background, c, got[:1], 0), hccl.RecvTagged(background, c, got[1:2], 0, 20),
				hccl.RecvTagged(background, c, got[2:], 0, 10), same("by tag", got, []int32{3, 2, 1}))
		})
	})
}

// One goroutine holds all ranks.
func TestGroupOverRanks(t *testing.T) {
	comms := world(t, 4)
	bufs := make([][]float64, len(comms))
	err := hccl.Group(background, func(g *hccl.Calls) error {
		for r, c := range comms {
			bufs[r] = []float64{float64(r), 1}
			if err := hccl.AllReduce(background, g.On(c), bufs[r], bufs[r], hccl.Sum); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for r := range bufs {
		if err := same(fmt.Sprint("rank ", r), bufs[r], []float64{6, 4}); err != nil {
			t.Error(err)
		}
	}
}

// A buffer that the compiler would like to keep on the stack, which moves when it grows.
func TestBuffersOfTheStack(t *testing.T) {
	must(t, world(t, 2), func(c *hccl.Comm) error {
		for range 100 {
			var mine, sum [16]int64
			mine[3] = int64(c.Rank() + 1)
			if err := hccl.AllReduce(background, c, mine[:], sum[:], hccl.Sum); err != nil {
				return err
			}
			if deep(200) != 200 || sum[3] != 3 {
				return fmt.Errorf("the sum is %d, want 3", sum[3])
			}
		}
		return nil
	})
}

//go:noinline
func deep(n int) int {
	var room [64]int
	if n == 0 {
		return room[0]
	}
	return 1 + deep(n-1)
}

func TestSplit(t *testing.T) {
	over(t, func(t *testing.T) {
		must(t, world(t, 5), func(c *hccl.Comm) error {
			color := c.Rank() % 2
			if c.Rank() == 4 {
				color = hccl.NoColor
			}
			half, err := c.Split(background, color, -c.Rank()) // the last comes first
			if err != nil || (half == nil) != (color == hccl.NoColor) {
				return first(err, fmt.Errorf("color %d got %v", color, half))
			}
			defer half.Close()
			if half == nil {
				return nil
			}
			if want := 1 - c.Rank()/2; half.Rank() != want || half.Size() != 2 {
				return fmt.Errorf("rank %d of %d, want %d of 2", half.Rank(), half.Size(), want)
			}
			sum := []int{c.Rank()}
			return first(hccl.AllReduce(background, half, sum, sum, hccl.Sum), same("half", sum, []int{2 + 2*color}))
		})
	})
}
