package pack

import (
	"encoding/binary"
	"math"
)

// walks is a host as rings see it: moves between devices on their fixed routes, and rows, which are links or groups of links that
// every move uses alike, so that the scarcest stands for all of them.
type walks struct {
	gpus, nets int
	closed     bool // rings close inside the host; else each host is passed from a port to a port
	fabric     bool // a ring may leave the host and come back
	forced     int  // a move between GPUs that has to go by the fabric whatever it costs; -1: none
	moves      [][]use
	hold       []float64 // of each row, GB/s
	rowOf      []int     // of each link, -1 where no move uses it
	cost       []float64 // of each move at the present prices
}

// use is what a move puts on a row.
type use struct {
	row  int32
	load float64
}

// far is what a move costs that has no route: more than any ring that has.
const far = 1e6

func newWalks(n *Network, hosts int) *walks {
	w := &walks{gpus: len(n.GPUs), nets: len(n.Nets), closed: hosts == 1, fabric: n.Cut && len(n.Nets) > 0, forced: -1}
	if w.closed && !w.fabric {
		w.nets = 0
	}
	devices := w.gpus + w.nets
	routes := make([][]Use, 0, devices*devices)
	for a := range devices {
		routes = append(routes, n.Routes[a][:devices]...)
	}
	w.group(n, routes)
	w.moves = make([][]use, len(routes))
	for m, route := range routes {
		if route != nil {
			w.moves[m] = w.uses(route)
		}
	}
	w.cost = make([]float64, len(routes))
	return w
}

// group gives links a row: the same row if all moves use them alike.
func (w *walks) group(n *Network, routes [][]Use) {
	alike := make([][]byte, len(n.Links))
	for m, route := range routes {
		for _, u := range route {
			alike[u.Link] = binary.LittleEndian.AppendUint32(alike[u.Link], uint32(m))
			alike[u.Link] = binary.LittleEndian.AppendUint64(alike[u.Link], math.Float64bits(u.Factor))
		}
	}
	rows := map[string]int{}
	for k, l := range n.Links {
		w.rowOf = append(w.rowOf, -1)
		if len(alike[k]) == 0 {
			continue
		}
		row, known := rows[string(alike[k])]
		if !known {
			row = len(w.hold)
			rows[string(alike[k])] = row
			w.hold = append(w.hold, l.Cap)
		}
		w.hold[row] = min(w.hold[row], l.Cap)
		w.rowOf[k] = row
	}
}

// uses is a route in rows. Links of one row are met together, so the first of them stands for all.
func (w *walks) uses(route []Use) []use {
	out := make([]use, 0, len(route))
next:
	for _, u := range route {
		row := int32(w.rowOf[u.Link])
		for _, had := range out {
			if had.row == row {
				continue next
			}
		}
		out = append(out, use{row, u.Factor})
	}
	return out
}

func (w *walks) move(a, b int) int { return a*(w.gpus+w.nets) + b }

// reprice sets the cost of every move.
func (w *walks) reprice(price []float64) {
	for m, uses := range w.moves {
		c := 0.0
		if uses == nil {
			c = far
		}
		for _, u := range uses {
			c += u.load * price[u.row]
		}
		w.cost[m] = c
	}
}

// hop is the cheapest way from GPU a to GPU b: the fixed route, or by a port out and a port in.
func (w *walks) hop(a, b int) (cost float64, out, in int) {
	cost, out, in = w.cost[w.move(a, b)], -1, -1
	if !w.fabric {
		return cost, out, in
	}
	if by, p, q := w.byFabric(a, b); by < cost || w.move(a, b) == w.forced {
		return by, p, q
	}
	return cost, out, in
}

func (w *walks) byFabric(a, b int) (cost float64, out, in int) {
	o, p := w.port(func(p int) float64 { return w.cost[w.move(a, p)] })
	i, q := w.port(func(p int) float64 { return w.cost[w.move(p, b)] })
	return o + i, p, q
}

// port is the port for which something costs least.
func (w *walks) port(of func(device int) float64) (float64, int) {
	least, port := math.Inf(1), -1
	for p := w.gpus; p < w.gpus+w.nets; p++ {
		if c := of(p); c < least {
			least, port = c, p
		}
	}
	return least, port
}

// loads adds what a unit of a ring puts on each row.
func (w *walks) loads(r *Ring, on []float64) {
	put := func(a, b int) {
		for _, u := range w.moves[w.move(a, b)] {
			on[u.row] += u.load
		}
	}
	for _, s := range r.Segments {
		if s.In >= 0 {
			put(w.gpus+s.In, s.GPUs[0])
		}
		for k := 1; k < len(s.GPUs); k++ {
			put(s.GPUs[k-1], s.GPUs[k])
		}
		switch last := s.GPUs[len(s.GPUs)-1]; {
		case s.Out >= 0:
			put(last, w.gpus+s.Out)
		case len(s.GPUs) > 1:
			put(last, s.GPUs[0])
		}
	}
}
