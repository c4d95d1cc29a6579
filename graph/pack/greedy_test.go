package pack

import "testing"

// More rows than a programme may have: the fall-back holds, and says how far it is from the bound.
func TestGreedyOfManyLinks(t *testing.T) {
	n := mesh(48)
	limit := Bound(n, 1)
	e := Effort{Slack: 0.01, Rounds: 24, Work: 1e9}
	rings := Rings(n, 1, limit, e)
	if w := newWalks(n, 1); len(w.hold) <= mostRows {
		t.Fatalf("%d rows, want more than %d", len(w.hold), mostRows)
	}
	holds(t, n, 1, rings)
	if rings.Bus < 0.3*limit.Bus || rings.Bound < rings.Bus || rings.Bound > limit.Bus*1.0001 {
		t.Errorf("rings of %g, bound %g, any schedule %g", rings.Bus, rings.Bound, limit.Bus)
	}
	trees := Trees(n, 1, limit, Effort{Slack: 0.01, Rounds: 3, Work: 1e9})
	if err := trees.Verify(n, 1); err != nil || trees.Bus < 0.2*limit.Bus {
		t.Errorf("trees of %g, any schedule %g: %v", trees.Bus, limit.Bus, err)
	}
}

// A search that may do next to nothing ends at once, and what it says still holds.
func TestLittleEffort(t *testing.T) {
	for _, work := range []int64{0, 1, 1e4, 1e5} {
		for _, n := range []*Network{nvswitch(8), mesh(6), nvswitch(20)} {
			e := Effort{Slack: 0.001, Rounds: 3, Work: work}
			limit := Bound(n, 1)
			rings, trees := Rings(n, 1, limit, e), Trees(n, 1, limit, e)
			holds(t, n, 1, rings)
			if err := trees.Verify(n, 1); err != nil {
				t.Errorf("%s with work %d: %v", name(n), work, err)
			}
			if rings.Bound < rings.Bus*0.9999 || trees.Bound < trees.Bus*0.9999 {
				t.Errorf("%s with work %d: rings %g of %g, trees %g of %g", name(n), work, rings.Bus, rings.Bound, trees.Bus, trees.Bound)
			}
		}
	}
}

func TestNoTreesFromHundredsOfGPUs(t *testing.T) {
	n := nvswitch(mostRoots + 2)
	if p := Trees(n, 1, Bound(n, 1), Thorough); p.Bus != 0 || len(p.Trees) > 0 {
		t.Errorf("trees of %g, want none", p.Bus)
	}
}
