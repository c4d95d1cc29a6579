package pack

import "math"

// mix is rings or trees with weights, and what x is proven not to exceed.
type mix struct {
	columns []column
	weights []float64 // they may be over what rows hold: whoever uses them scales them
	bound   float64
}

// mix is what the programme has found.
func (p *program) mix() mix {
	w, _ := p.weights()
	return mix{p.columns, w, p.bound}
}

// mostRows is how many rows a programme may have: its inverse has their square, and each step takes as long. Hosts in use have 250.
const mostRows = 1500

// greedy is the fast fall-back for networks beyond that: round after round it takes the cheapest column of each demand at prices that
// grow with what the columns before put on a row, all with the same weight, and remembers the best bound that a round's prices prove.
// Beyond so much work there are no more rounds.
func greedy(ask pricer, hold, want []float64, rounds int, work int64) mix {
	m := mix{bound: 1}
	price, load := make([]float64, len(hold)), make([]float64, len(hold))
	var found []column
	for round := range rounds {
		if ask.spent() > work {
			break
		}
		reprice(price, load, hold)
		var cost float64
		found, cost = ask.price(price, round%8 == 0, found[:0])
		if cost > 0 {
			earned := 0.0
			for r, h := range hold {
				earned += h * price[r]
			}
			m.bound = min(m.bound, earned/cost)
		}
		for d := range want {
			if c := cheapestOf(found, d, price); c != nil {
				c.addTo(load, want[d])
				m.columns, m.weights = append(m.columns, *c), append(m.weights, want[d]/float64(rounds))
			}
		}
	}
	return m
}

// reprice makes rows dear that are loaded: by e for each eighth of the load of the most loaded.
func reprice(price, load, hold []float64) {
	most := tiny
	for r, h := range hold {
		most = max(most, load[r]/h)
	}
	for r, h := range hold {
		price[r] = math.Exp(8*(load[r]/h/most-1)) / h
	}
}

func (c *column) addTo(load []float64, weight float64) {
	for k, r := range c.rows {
		load[r] += weight * c.loads[k]
	}
}

func cheapestOf(found []column, demand int, price []float64) (best *column) {
	least := math.Inf(1)
	for k := range found {
		c := &found[k]
		cost := 0.0
		for i, r := range c.rows {
			cost += price[r] * c.loads[i]
		}
		if c.demand == demand && cost < least {
			best, least = c, cost
		}
	}
	return best
}
