package fabric

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"
)

// Route is one way between two hosts.
type Route struct {
	Links  []int   // in the order of travel
	Metric float64 // sum over links of length times the fastest link's bandwidth / this one's: slow links count more
	GBps   float64 // of the slowest link
}

// Hops is how many links the route takes.
func (r *Route) Hops() int { return len(r.Links) }

// Router finds routes and remembers them.
type Router struct {
	f      *Fabric
	k      int
	known  map[[2]int][]Route
	metric []float64 // by link
}

// MaxRoutes bounds how many ways between two hosts can be asked for.
const MaxRoutes = 64

// NewRouter is for up to k ways between two hosts.
func NewRouter(f *Fabric, k int) (*Router, error) {
	if k < 1 || k > MaxRoutes {
		return nil, fmt.Errorf("%d routes between two hosts were asked for, 1 to %d are possible", k, MaxRoutes)
	}
	r := &Router{f: f, k: k, known: map[[2]int][]Route{}, metric: make([]float64, len(f.Links))}
	fastest := 0.0
	for _, l := range f.Links {
		fastest = max(fastest, l.GBps)
	}
	for i, l := range f.Links {
		r.metric[i] = fastest / l.GBps * l.Length
	}
	return r, nil
}

// Routes are the ways from one host to another without a loop, shortest first (J. Y. Yen, "Finding the k shortest loopless paths in a
// network", 1971). Other hosts are not on them. Among equally long ones the order is that of the links' numbers, scattered by pair, so
// that different pairs do not all begin with the same.
func (r *Router) Routes(from, to int) ([]Route, error) {
	if from < 0 || to < 0 || from >= len(r.f.Nodes) || to >= len(r.f.Nodes) || from == to {
		return nil, fmt.Errorf("there is no route from node %d to node %d", from, to)
	}
	key := [2]int{from, to}
	if routes, ok := r.known[key]; ok {
		return routes, nil
	}
	g := simple.NewWeightedDirectedGraph(0, math.Inf(1))
	for i, l := range r.f.Links {
		if r.passes(l.From, from, to) && r.passes(l.To, from, to) {
			g.SetWeightedEdge(g.NewWeightedEdge(simple.Node(l.From), simple.Node(l.To), r.metric[i]+tie(i, from, to)))
		}
	}
	if g.Node(int64(from)) == nil || g.Node(int64(to)) == nil {
		return nil, r.noWay(from, to)
	}
	var routes []Route
	for _, nodes := range path.YenKShortestPaths(g, r.k, math.Inf(1), simple.Node(from), simple.Node(to)) {
		route := Route{GBps: math.Inf(1)}
		for i := 1; i < len(nodes); i++ {
			l := r.f.byEnds[[2]int{int(nodes[i-1].ID()), int(nodes[i].ID())}]
			route.Links = append(route.Links, l)
			route.Metric += r.metric[l]
			route.GBps = min(route.GBps, r.f.Links[l].GBps)
		}
		routes = append(routes, route)
	}
	if len(routes) == 0 {
		return nil, r.noWay(from, to)
	}
	slices.SortStableFunc(routes, func(a, b Route) int { return cmp.Compare(math.Round(a.Metric*1e6), math.Round(b.Metric*1e6)) })
	r.known[key] = routes
	return routes, nil
}

func (r *Router) noWay(from, to int) error {
	return fmt.Errorf("no way leads from %s to %s: add the links between their switches", r.f.Nodes[from].Name, r.f.Nodes[to].Name)
}

func (r *Router) passes(n, from, to int) bool {
	return r.f.Nodes[n].Kind == Switch || n == from || n == to
}

// tie makes lengths differ that are equal, by far less than links do, and always in the same way: the search must not depend on the
// order in which a map is walked.
func tie(link, from, to int) float64 {
	x := uint64(link)*0x9e3779b97f4a7c15 ^ uint64(from)*0xbf58476d1ce4e5b9 ^ uint64(to)*0x94d049bb133111eb
	x ^= x >> 31
	x *= 0xd6e8feb86659fd93
	return float64(x>>40) * 1e-15
}

// Entry is a line of a routing table.
type Entry struct {
	To       string   `json:"to"`
	Metric   float64  `json:"metric"`
	Hops     int      `json:"hops"`
	NextHops []string `json:"next_hops"` // of all ways with this metric and number of hops
}

// Table is the routing table of a host: how it reaches each of the others, shortest ways first.
func (r *Router) Table(from int) ([]Entry, error) {
	var table []Entry
	for _, to := range r.f.Hosts() {
		if to == from {
			continue
		}
		routes, err := r.Routes(from, to)
		if err != nil {
			return nil, err
		}
		for _, route := range routes {
			next := r.f.Nodes[r.f.Links[route.Links[0]].To].Name
			i := slices.IndexFunc(table, func(e Entry) bool {
				return e.To == r.f.Nodes[to].Name && e.Hops == route.Hops() && math.Abs(e.Metric-route.Metric) < 1e-6
			})
			if i < 0 {
				table = append(table, Entry{To: r.f.Nodes[to].Name, Metric: route.Metric, Hops: route.Hops(), NextHops: []string{next}})
			} else if !slices.Contains(table[i].NextHops, next) {
				table[i].NextHops = append(table[i].NextHops, next)
			}
		}
	}
	return table, nil
}
