package fabric

import (
	"cmp"
	"slices"
)

// Flow is what one host sends another while others send too: a demand in any unit, the same for all.
type Flow struct {
	From, To int // hosts
	Demand   float64
}

// Placed is a part of a flow and its way.
type Placed struct {
	Flow  int // number of the flow
	Share float64
	Route Route
}

// Plan is a way for each part of each flow. Worst is the largest of (demand over a link) / (its GB/s): with demands in GB it is the
// seconds that all of it takes, and 1/Worst is the factor by which all demands can grow or must shrink to be rates.
type Plan struct {
	Placed []Placed
	Worst  float64
	Link   int // the link that has it; -1: no flow
}

// Single places every flow on its shortest way alone, as static routing without regard to load does.
func (r *Router) Single(flows []Flow) (Plan, error) {
	p := placing{r: r, load: make([]float64, len(r.f.Links))}
	for i, f := range flows {
		routes, err := r.Routes(f.From, f.To)
		if err != nil {
			return Plan{}, err
		}
		p.put(Placed{i, f.Demand, routes[0]})
	}
	return p.plan(), nil
}

// Spread cuts each flow into parts (channels) and chooses a way for each, so that the most loaded link carries as little as can be
// found: the largest parts first, each where the worst link on its way is then least loaded, and then again part by part until a
// round changes nothing.
func (r *Router) Spread(flows []Flow, parts int) (Plan, error) {
	p := placing{r: r, load: make([]float64, len(r.f.Links))}
	parts = max(parts, 1)
	order := make([]int, len(flows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(flows[b].Demand, flows[a].Demand) })
	for range parts {
		for _, i := range order {
			routes, err := r.Routes(flows[i].From, flows[i].To)
			if err != nil {
				return Plan{}, err
			}
			share := flows[i].Demand / float64(parts)
			p.put(Placed{i, share, routes[p.best(routes, share)]})
		}
	}
	for range rounds {
		if !p.improve(flows) {
			break
		}
	}
	return p.plan(), nil
}

// rounds bounds the search; on generated fabrics it ends after 3 to 10.
const rounds = 50

// placing is a plan that is being made, with what its links carry.
type placing struct {
	r      *Router
	placed []Placed
	load   []float64
}

func (p *placing) put(x Placed) {
	p.placed = append(p.placed, x)
	p.add(x.Route, x.Share)
}

func (p *placing) add(r Route, share float64) {
	for _, l := range r.Links {
		p.load[l] += share
	}
}

// best is the number of the route on which share more makes the least of the worst link; then of all links together.
func (p *placing) best(routes []Route, share float64) int {
	best, worst, total := 0, 0.0, 0.0
	for i, r := range routes {
		w, t := p.cost(r, share)
		if i == 0 || w < worst-tiny || w < worst+tiny && t < total-tiny {
			best, worst, total = i, w, t
		}
	}
	return best
}

const tiny = 1e-9

func (p *placing) cost(r Route, share float64) (worst, total float64) {
	for _, l := range r.Links {
		u := (p.load[l] + share) / p.r.f.Links[l].GBps
		worst = max(worst, u)
		total += u
	}
	return worst, total
}

// improve takes each part off its way and puts it on the best one. It reports whether any has moved to a better one.
func (p *placing) improve(flows []Flow) bool {
	moved := false
	for i := range p.placed {
		x := &p.placed[i]
		p.add(x.Route, -x.Share)
		routes := p.r.known[[2]int{flows[x.Flow].From, flows[x.Flow].To}]
		better := routes[p.best(routes, x.Share)]
		was, _ := p.cost(x.Route, x.Share)
		if is, _ := p.cost(better, x.Share); is < was-tiny {
			x.Route, moved = better, true
		}
		p.add(x.Route, x.Share)
	}
	return moved
}

func (p *placing) plan() Plan {
	plan := Plan{Placed: p.placed, Link: -1}
	for l, load := range p.load {
		if u := load / p.r.f.Links[l].GBps; u > plan.Worst+tiny {
			plan.Worst, plan.Link = u, l
		}
	}
	return plan
}

// RingFlows are the flows of a ring of hosts in this order, of one unit each.
func RingFlows(order []int) []Flow {
	var flows []Flow
	for i, h := range order {
		if next := order[(i+1)%len(order)]; next != h {
			flows = append(flows, Flow{h, next, 1})
		}
	}
	return flows
}
