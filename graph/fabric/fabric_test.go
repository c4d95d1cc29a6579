package fabric

import (
	"math"
	"strings"
	"testing"
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// degree is how many links lead from each node, by kind of the other end.
func degree(f *Fabric, n int, kind Kind) (d int) {
	for _, l := range f.Links {
		if l.From == n && f.Nodes[l.To].Kind == kind {
			d++
		}
	}
	return d
}

func TestFatTree(t *testing.T) {
	f := must[*Fabric](t)(FatTree(4, 25))
	if n := len(f.Hosts()); n != 16 || len(f.Nodes) != 16+20 {
		t.Fatalf("%d hosts, %d nodes", n, len(f.Nodes))
	}
	for n, node := range f.Nodes {
		if node.Kind == Switch && degree(f, n, Host)+degree(f, n, Switch) != 4 {
			t.Errorf("switch %s has %d links", node.Name, degree(f, n, Host)+degree(f, n, Switch))
		}
	}
	r := must[*Router](t)(NewRouter(f, 8))
	for _, c := range []struct{ from, to, hops, ways int }{{0, 1, 2, 1}, {0, 2, 4, 2}, {0, 15, 6, 4}} {
		routes := must[[]Route](t)(r.Routes(f.Hosts()[c.from], f.Hosts()[c.to]))
		shortest := 0
		for _, route := range routes {
			if route.Hops() == c.hops {
				shortest++
			}
		}
		if routes[0].Hops() != c.hops || shortest != c.ways {
			t.Errorf("host %d to %d: %d hops by %d ways, want %d by %d", c.from, c.to, routes[0].Hops(), shortest, c.hops, c.ways)
		}
	}
}

func TestDragonflyJoinsEveryTwoGroups(t *testing.T) {
	for _, s := range []DragonflySize{{4, 2, 2, 0}, {4, 1, 2, 5}, {2, 1, 1, 3}, {3, 1, 2, 4}} {
		f := must[*Fabric](t)(Dragonfly(s, 25))
		joined := map[[2]int]bool{}
		global := map[int]int{}
		for _, l := range f.Links {
			a, b := f.Nodes[l.From], f.Nodes[l.To]
			if a.Kind == Switch && b.Kind == Switch && a.Group != b.Group {
				joined[[2]int{a.Group, b.Group}] = true
				global[l.From] += int(math.Round(l.GBps / 25))
			}
		}
		groups := s.Groups
		if groups == 0 {
			groups = s.Routers*s.Global + 1
		}
		if len(joined) != groups*(groups-1) {
			t.Errorf("%+v: %d pairs of groups are joined, want %d", s, len(joined), groups*(groups-1))
		}
		for n, cables := range global {
			if cables > s.Global {
				t.Errorf("%+v: %s has %d cables to other groups", s, f.Nodes[n].Name, cables)
			}
		}
	}
}

func TestRailOptimised(t *testing.T) {
	f := must[*Fabric](t)(RailOptimised(RailSize{Hosts: 6, Rails: 4, PerLeaf: 4, Spines: 2}, 50))
	for _, h := range f.Hosts() {
		if degree(f, h, Switch) != 4 {
			t.Errorf("%s has %d rails", f.Nodes[h].Name, degree(f, h, Switch))
		}
	}
	r := must[*Router](t)(NewRouter(f, 4))
	if routes := must[[]Route](t)(r.Routes(f.Find("host0"), f.Find("host3"))); len(routes) != 4 || routes[3].Hops() != 2 {
		t.Errorf("hosts below the same leaves: %d ways, the last of %d hops; want 4 of 2", len(routes), routes[len(routes)-1].Hops())
	}
	if near := f.Near(); near[0] != near[3] || near[0] == near[4] {
		t.Errorf("switches next to the hosts: %v", near)
	}
}

func TestRefused(t *testing.T) {
	for name, make := range map[string]func() (*Fabric, error){
		"odd fat tree":        func() (*Fabric, error) { return FatTree(3, 25) },
		"fat tree of nothing": func() (*Fabric, error) { return FatTree(4, math.NaN()) },
		"groups":              func() (*Fabric, error) { return Dragonfly(DragonflySize{2, 1, 1, 4}, 25) },
		"rails":               func() (*Fabric, error) { return RailOptimised(RailSize{Hosts: 4, Rails: 0, PerLeaf: 1, Spines: 1}, 25) },
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), "wanted") && !strings.Contains(err.Error(), "GB/s") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := New()
	a, _ := f.Add("a", Host, -1)
	b, _ := f.Add("b", Host, -1)
	r := must[*Router](t)(NewRouter(f, 1))
	if _, err := r.Routes(a, b); err == nil || !strings.Contains(err.Error(), "from a to b") {
		t.Errorf("hosts without a link: %v", err)
	}
	if _, err := f.Add("a", Switch, -1); err == nil {
		t.Error("a name was taken twice")
	}
	if f.Connect(a, a, 1) == nil || f.Connect(a, b, -1) == nil || f.Connect(a, 7, 1) == nil {
		t.Error("a link that cannot be was taken")
	}
}
