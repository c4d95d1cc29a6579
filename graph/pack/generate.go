package pack

import (
	"encoding/binary"
	"math"
)

// pricer finds, for prices of the rows, cheap columns of each demand. cost is the sum over the demands of what they want times
// the cost of their cheapest column, or a lower bound of it; a pricer that cannot say returns 0. Asked to be exact it takes its time
// for the cheapest of all and for a cost.
type pricer interface {
	price(price []float64, exact bool, found []column) (columns []column, cost float64)
	spent() int64 // work so far, in the same unit as the programme's
}

// program packs columns into rows. All is scaled so that the optimum is near 1: hold and want by the caller, prices here.
type program struct {
	*simplex
	hold  []float64
	bound float64   // proven: x is never more
	at    []float64 // prices that proved it, scaled so that they prove exactly bound
	known map[string]bool
	key   []byte
}

func newProgram(hold, want []float64) *program {
	return &program{simplex: newSimplex(hold, want), hold: hold, bound: 1, known: map[string]bool{}}
}

// generate adds columns until the weights are within the effort's slack of the bound, or its rounds or its work are over.
//
// The prices of a programme with few columns jump about, and columns that are cheap for one jump are of no use after the next. So
// columns are asked for at prices between the present ones and those that gave the best bound so far (P. Wentges, 1997).
func (p *program) generate(ask pricer, e Effort) {
	var found []column
	mixed := make([]float64, p.links)
	stood, before := 0, 0.0 // rounds without progress, and where they began
	for range e.Rounds {
		p.solve(e.Work - ask.spent())
		if p.x() >= (1-e.Slack)*p.bound || p.work+ask.spent() >= e.Work {
			return
		}
		if stood++; p.x() > before*(1+e.Slack/10) {
			stood, before = 0, p.x()
		}
		added := false
		for _, ways := range attempts {
			if stood%patience == patience-1 && !ways.exact {
				continue // it may be the optimum already: ask for a proof
			}
			p.blend(mixed, ways.old)
			var cost float64
			found, cost = ask.price(mixed, ways.exact, found[:0])
			p.prove(mixed, cost)
			if added = p.join(found); added {
				break
			}
		}
		if !added {
			return
		}
	}
}

const patience = 8

// attempts are the ways in which columns are asked for, until one gives any: the share of the old prices, and whether exactly.
var attempts = []struct {
	old   float64
	exact bool
}{{0.7, false}, {0, false}, {0, true}}

func (p *program) blend(to []float64, old float64) {
	for r := range to {
		to[r] = max(0, p.price[r])
		if p.at != nil {
			to[r] = old*p.at[r] + (1-old)*to[r]
		}
	}
}

// prove takes the bound that prices give: whatever the weights are, links earn at most sum of hold * price, and each unit of x has
// to pay for what all demands want at least at the cheapest.
func (p *program) prove(price []float64, cost float64) {
	if cost <= 0 {
		return
	}
	earned := 0.0
	for r, h := range p.hold {
		earned += h * max(0, price[r])
	}
	if bound := earned / cost; bound < p.bound || p.at == nil {
		p.bound = min(p.bound, bound)
		p.at = append(p.at[:0], price[:p.links]...)
		for r := range p.at {
			p.at[r] /= cost
		}
	}
}

// join takes the columns that are worth something at the present prices and not yet known.
func (p *program) join(found []column) bool {
	added := false
	for k := range found {
		if p.gain(&found[k]) > tiny && p.fresh(&found[k]) {
			p.add(found[k])
			added = true
		}
	}
	return added
}

func (p *program) fresh(c *column) bool {
	p.key = append(p.key[:0], byte(c.demand))
	for k, r := range c.rows {
		p.key = append(p.key, byte(r), byte(r>>8))
		p.key = binary.LittleEndian.AppendUint32(p.key, math.Float32bits(float32(c.loads[k])))
	}
	if p.known[string(p.key)] {
		return false
	}
	p.known[string(p.key)] = true
	return true
}

// warm fills the programme before the first solve by multiplicative weights: each round asks for columns at prices that grow with the
// load that the columns before have put on a row.
func (p *program) warm(ask pricer, rounds int, e Effort) {
	price := make([]float64, p.links)
	load := make([]float64, p.links)
	var found []column
	for range rounds {
		if ask.spent() > e.Work/4 {
			return // the solve that follows needs some
		}
		reprice(price, load, p.hold)
		var cost float64
		found, cost = ask.price(price, false, found[:0])
		p.prove(price, cost)
		for k := range found {
			c := &found[k]
			c.addTo(load, p.want[c.demand])
			if p.fresh(c) {
				p.add(*c)
			}
		}
	}
}
