package pack

import (
	"cmp"
	"slices"
)

// Segment is a stretch of a ring over GPUs of one host, entered from port In and left by port Out; -1 both where the ring closes
// inside the host. GPUs and ports are numbered as in the Network.
type Segment struct {
	In, Out int
	GPUs    []int
}

// Ring passes every GPU of a host once. With several hosts every host is passed alike, one after the other; the last segment's way
// out leads to the next host.
type Ring struct {
	Weight   float64
	Segments []Segment
}

// RingPacking is a set of rings that the links hold together.
type RingPacking struct {
	Rings []Ring
	Bus   float64 // GB/s: the sum of the weights
	// Bound is what no such rings can exceed, for rings that leave a host by the port that they came in by; Cross likewise for rings
	// that may leave by another one. Both are proven.
	Bound, Cross float64
	Loads        []float64 // what the rings put on each link of a host
}

// Effort is how long a search goes on: a share of the bound that is near enough; rounds of the programme, and work, after which what
// was found has to do. Work is numbers looked at, a thousand millions of which take a second or two. There is no clock in it, since all
// ranks are to find the same.
type Effort struct {
	Slack  float64
	Rounds int
	Work   int64
}

// Thorough is enough for the optimum on all machines in use today, and ends after a second or two on any.
var Thorough = Effort{Slack: 0.0005, Rounds: 400, Work: 6e8}

// Rings packs rings into copies of host n. limit is the bound for any schedule (Bound), in which every ring packing stays.
func Rings(n *Network, hosts int, limit Limit, e Effort) RingPacking {
	none := RingPacking{Loads: make([]float64, len(n.Links))}
	if hosts*len(n.GPUs) < 2 || limit.Bus <= 0 || hosts > 1 && len(n.Nets) == 0 {
		return none
	}
	w := newWalks(n, hosts)
	hold := make([]float64, len(w.hold))
	for r, h := range w.hold {
		hold[r] = h / limit.Bus
	}
	g := newGuide(w)
	if len(hold) > mostRows {
		m := greedy(g, hold, []float64{1}, min(e.Rounds, 32), e.Work)
		none.Bound, none.Cross = m.bound*limit.Bus, m.bound*limit.Bus
		return g.packing(m, none)
	}
	p := newProgram(hold, []float64{1})
	p.warm(g, 16, e)
	p.generate(g, e)
	none.Bound, none.Cross = p.bound*limit.Bus, p.bound*limit.Bus
	best := p.thin()
	if !w.closed && w.nets > 1 && p.bound < 1-e.Slack {
		before := p.x()
		g.cross = true
		p.bound, p.at = 1, nil
		p.generate(g, e)
		none.Cross = p.bound * limit.Bus
		if p.x() > before*crossGain {
			best = p.thin()
		}
	}
	return g.packing(best.mix(), none)
}

// Rings that come in by one port and leave by another leave their rail, which real fabrics punish: they are taken only for a gain.
const crossGain = 1.0005

// Channels cost threads and buffers on every rank. A programme's optimum may have as many rings as rows, and often the most of it is in
// a few of them: with these alone, weighed anew, it may be nearly as good.
var fewRings = []int{16, 32, 64}

const (
	thinned  = 0.0003 // what thinning may cost of the bandwidth
	thinWork = 3e8
)

// thin is the programme with fewer columns.
func (p *program) thin() *program {
	weights, full := p.weights()
	var used []int
	for j, w := range weights {
		if w > 0 {
			used = append(used, j)
		}
	}
	slices.SortStableFunc(used, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	for _, most := range fewRings {
		q := p.only(used[:min(most, len(used))])
		if _, x := q.weights(); x >= (1-thinned)*full {
			return q
		}
	}
	return p.only(used)
}

// only is the programme with some of the columns, solved.
func (p *program) only(columns []int) *program {
	q := newProgram(p.hold, p.want)
	for _, j := range columns {
		q.add(p.columns[j])
	}
	q.solve(thinWork)
	return q
}

// packing scales the weights to what the links hold.
func (g *guide) packing(m mix, out RingPacking) RingPacking {
	load := make([]float64, len(g.w.hold))
	for j, w := range m.weights {
		if w < 1e-5 {
			continue
		}
		c := &m.columns[j]
		r := g.rings[c.tag]
		r.Weight = w
		out.Rings = append(out.Rings, r)
		c.addTo(load, w)
	}
	most := 0.0
	for r, l := range load {
		most = max(most, l/g.w.hold[r])
	}
	for k := range out.Rings {
		out.Rings[k].Weight /= most
		out.Bus += out.Rings[k].Weight
	}
	for k, row := range g.w.rowOf {
		if row >= 0 && most > 0 {
			out.Loads[k] = load[row] / most
		}
	}
	return out
}
