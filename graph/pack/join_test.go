package pack

import (
	"slices"
	"testing"
)

func TestHostsThatAreAlikeAreOneKind(t *testing.T) {
	cut := mesh(4)
	cut.Cut = true
	kind, first := Kinds([]*Network{mesh(4), line(3), mesh(4), line(3), cut, nvswitch(4)})
	if !slices.Equal(kind, []int{0, 1, 0, 1, 2, 3}) || len(first) != 4 {
		t.Errorf("kinds %v of %d, want 0 1 0 1 2 3", kind, len(first))
	}
}

// job is sites of kinds with ranks in order.
func job(kinds []*Network, of ...int) (sites []Site) {
	rank := 0
	for _, k := range of {
		s := Site{Kind: k}
		for range kinds[k].GPUs {
			s.Ranks = append(s.Ranks, rank)
			rank++
		}
		sites = append(sites, s)
	}
	return sites
}

func join(t *testing.T, kinds []*Network, sites []Site) (channels []Channel, bus float64, packs []RingPacking) {
	t.Helper()
	for _, n := range kinds {
		packs = append(packs, ringsOf(t, n, len(sites)))
	}
	channels, err := Join(packs, sites)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range channels {
		bus += c.Weight
	}
	return channels, bus, packs
}

// every checks that a channel passes every rank once, and hosts one after the other.
func every(t *testing.T, c Channel, sites []Site) {
	t.Helper()
	at := 0
	for _, s := range sites {
		passed := slices.Clone(c.Order[at : at+len(s.Ranks)])
		slices.Sort(passed)
		if want := slices.Sorted(slices.Values(s.Ranks)); !slices.Equal(passed, want) {
			t.Fatalf("a host's ranks are %v, the channel passes %v there", want, passed)
		}
		at += len(s.Ranks)
	}
	if at != len(c.Order) {
		t.Fatalf("%d ranks in the channel, want %d", len(c.Order), at)
	}
}

func TestChannelsOf4096Ranks(t *testing.T) {
	kinds := []*Network{nvswitch(8)}
	sites := job(kinds, make([]int, 512)...)
	channels, bus, packs := join(t, kinds, sites)
	about(t, "all channels", bus, packs[0].Bus)
	for _, c := range channels {
		every(t, c, sites)
	}
}

func TestUnlikeHostsAreJoinedAtTheSlower(t *testing.T) {
	kinds := []*Network{nvswitch(8), line(3), nvswitch(4)}
	sites := job(kinds, 0, 1, 2, 2, 0)
	channels, bus, packs := join(t, kinds, sites)
	about(t, "all channels", bus, 10) // the port of the line
	for _, c := range channels {
		every(t, c, sites)
	}
	for k, p := range packs { // each kind's rings are used in the parts that they have
		used := make([]float64, len(p.Rings))
		for _, c := range channels {
			used[c.Rings[k]] += c.Weight
		}
		for r := range used {
			if used[r] > p.Rings[r].Weight*1.0001 {
				t.Errorf("kind %d: ring %d is used at %g of %g", k, r, used[r], p.Rings[r].Weight)
			}
		}
	}
}

func TestJoinRefusesWhatDoesNotFit(t *testing.T) {
	p := ringsOf(t, mesh(3), 1)
	if _, err := Join([]RingPacking{p}, []Site{{Kind: 1}}); err == nil {
		t.Error("a kind that there is not: no error")
	}
	if _, err := Join([]RingPacking{p}, []Site{{Kind: 0, Ranks: []int{0}}}); err == nil {
		t.Error("too few ranks: no error")
	}
	if c, err := Join([]RingPacking{{}}, []Site{{}}); err != nil || c != nil {
		t.Errorf("no rings: %v, %v", c, err)
	}
}

func TestFewRingsAreNearlyAsGoodAsMany(t *testing.T) {
	n := mesh(8)
	limit := Bound(n, 1)
	p := Rings(n, 1, limit, Thorough)
	if len(p.Rings) > 64 || p.Bus < 0.99*p.Bound {
		t.Errorf("%d rings of %g, bound %g", len(p.Rings), p.Bus, p.Bound)
	}
}
