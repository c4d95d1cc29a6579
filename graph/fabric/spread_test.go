package fabric

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// check looks at a plan from outside: whole flows, connected ways, and the load that it claims.
func check(t *testing.T, f *Fabric, flows []Flow, p Plan) {
	t.Helper()
	load, demand := make([]float64, len(f.Links)), make([]float64, len(flows))
	for _, x := range p.Placed {
		at := flows[x.Flow].From
		for _, l := range x.Route.Links {
			if f.Links[l].From != at {
				t.Fatalf("a way of flow %d jumps from node %d to %d", x.Flow, at, f.Links[l].From)
			}
			at = f.Links[l].To
			load[l] += x.Share
		}
		if at != flows[x.Flow].To {
			t.Fatalf("a way of flow %d ends at node %d", x.Flow, at)
		}
		demand[x.Flow] += x.Share
	}
	for i := range flows {
		if d := demand[i] - flows[i].Demand; d > 1e-9 || d < -1e-9 {
			t.Fatalf("flow %d is placed with %g of %g", i, demand[i], flows[i].Demand)
		}
	}
	worst := 0.0
	for l := range load {
		worst = max(worst, load[l]/f.Links[l].GBps)
	}
	if d := worst - p.Worst; d > 1e-6 || d < -1e-6 {
		t.Fatalf("the worst link carries %g, claimed are %g", worst, p.Worst)
	}
}

// TestDragonflyAcrossGroups is the case that the single shortest way cannot do: all hosts of a group send to those of the next one
// and there is one cable between the two. Ways over other groups carry three times as much and more.
func TestDragonflyAcrossGroups(t *testing.T) {
	f := must[*Fabric](t)(Dragonfly(DragonflySize{Routers: 4, Hosts: 2, Global: 2}, 25))
	hosts := f.Hosts()
	var flows []Flow
	for i := range 8 {
		flows = append(flows, Flow{hosts[i], hosts[8+i], 1})
	}
	r := must[*Router](t)(NewRouter(f, 24))
	single := must[Plan](t)(r.Single(flows))
	spread := must[Plan](t)(r.Spread(flows, 4))
	check(t, f, flows, single)
	check(t, f, flows, spread)
	if gain := single.Worst / spread.Worst; gain < 3 {
		t.Errorf("spread over several ways, the worst link carries %.3g instead of %.3g: %.2f times, want 3", spread.Worst, single.Worst, gain)
	}
}

// TestDragonflyRing compares what a communicator of all hosts gets: a ring in the order of the fabric over several ways, and one in
// an order that knows nothing over the shortest.
func TestDragonflyRing(t *testing.T) {
	f := must[*Fabric](t)(Dragonfly(DragonflySize{Routers: 4, Hosts: 2, Global: 2}, 25))
	hosts := f.Hosts()
	blind := make([]int, len(hosts))
	for i, k := range rand.New(rand.NewPCG(5, 6)).Perm(len(hosts)) {
		blind[i] = hosts[k]
	}
	r := must[*Router](t)(NewRouter(f, 8))
	single := must[Plan](t)(r.Single(RingFlows(blind)))
	ours := must[Plan](t)(r.Spread(RingFlows(hosts), 2))
	check(t, f, RingFlows(hosts), ours)
	if gain := single.Worst / ours.Worst; gain < 3 {
		t.Errorf("%.3g against %.3g on the worst link: %.2f times, want 3", ours.Worst, single.Worst, gain)
	}
}

// TestConcurrentGroups: two rings at the same time across a fat tree's pods share no link that has an alternative.
func TestConcurrentGroups(t *testing.T) {
	f := must[*Fabric](t)(FatTree(4, 25))
	h := f.Hosts()
	flows := append(RingFlows([]int{h[0], h[4], h[8], h[12]}), RingFlows([]int{h[1], h[5], h[9], h[13]})...)
	r := must[*Router](t)(NewRouter(f, 4))
	spread := must[Plan](t)(r.Spread(flows, 1))
	check(t, f, flows, spread)
	if spread.Worst > 1.0/25+1e-9 {
		t.Errorf("the worst link, %v, carries %.3g flows; each can have a way of its own", f.Links[spread.Link], spread.Worst*25)
	}
}

// TestSameAgain: routes and plans do not depend on the order of maps.
func TestSameAgain(t *testing.T) {
	plan := func() Plan {
		f := must[*Fabric](t)(FatTree(6, 25))
		h := f.Hosts()
		r := must[*Router](t)(NewRouter(f, 6))
		return must[Plan](t)(r.Spread(RingFlows([]int{h[0], h[50], h[10], h[40], h[20], h[30]}), 3))
	}
	first := plan()
	for range 5 {
		if again := plan(); !reflect.DeepEqual(first, again) {
			t.Fatal("the same input gave another plan")
		}
	}
}

func TestTable(t *testing.T) {
	f := must[*Fabric](t)(FatTree(4, 25))
	r := must[*Router](t)(NewRouter(f, 4))
	table := must[[]Entry](t)(r.Table(f.Find("host0")))
	for _, e := range table {
		if e.To == "host1" && (e.Hops != 2 || e.Metric != 2 || len(e.NextHops) != 1 || e.NextHops[0] != "edge0.0") {
			t.Errorf("%+v", e)
		}
	}
	if len(table) < 15 {
		t.Errorf("%d entries for 15 hosts", len(table))
	}
}
