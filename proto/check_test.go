package proto

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"hccl.dev/hccl/internal/coll"
)

// buildAll makes the plans of all ranks.
func buildAll(t testing.TB, k Key) []*Plan {
	t.Helper()
	plans := make([]*Plan, k.N)
	for r := range plans {
		k.Rank = r
		p, err := Build(k)
		if err != nil {
			t.Fatalf("%+v: %v", k, err)
		}
		plans[r] = p
	}
	return plans
}

// keys calls f for every function, algorithm, root and number of channels on n ranks, and for ranks that are far ahead.
func keys(n int, f func(Key)) {
	for fn := coll.Func(0); fn < coll.NumFuncs; fn++ {
		roots := 1
		if fn.Rooted() {
			roots = n
		}
		for algo := Algo(0); algo < NumAlgos; algo++ {
			for _, channels := range []int{1, 2, 4} {
				for root := 0; root < roots && has(fn, algo); root++ {
					f(Key{Func: fn, Algo: algo, N: n, Root: root, Channels: channels})
					if algo.direct() && channels == 2 {
						f(Key{Func: fn, Algo: algo, N: n, Root: root, Channels: channels, Ahead: 3 + n%6})
					}
				}
			}
		}
	}
}

// TestMain lets the heap grow: the checker makes millions of short-lived values.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestEveryPlanIsRight goes through all functions, algorithms, ranks and roots. To end in time, keys take turns with the larger
// shapes above 12 ranks, and roots with the numbers of channels; chunks of many slices are for few ranks.
func TestEveryPlanIsRight(t *testing.T) {
	most := 33
	if testing.Short() {
		most = 6
	}
	for n := most; n >= 1; n-- {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			count := 0
			keys(n, func(k Key) {
				shapes := Shapes(k)
				switch {
				case n > 12 && k.Func.Rooted() && k.Channels != 1<<(k.Root%3):
					return
				case n > 12:
					shapes = shapes[count%2:][:1]
				case n > 4:
					shapes = slices.DeleteFunc(shapes, func(s Shape) bool { return s.Count > uint64(6*n*k.Channels) })
				}
				count++
				if err := Check(buildAll(t, k), shapes...); err != nil {
					t.Error(err)
				}
			})
			if count == 0 {
				t.Error("no plan was checked")
			}
		})
	}
}
