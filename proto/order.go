package proto

import "fmt"

// Order is the order of ranks around a ring: neighbours are near each other where it is well chosen (package graph). It is immutable.
type Order struct {
	ranks  []int32 // by place
	places []int32 // by rank
}

// NewOrder makes an order of ranks, which must hold each of 0..len-1 once.
func NewOrder(ranks []int) (*Order, error) {
	o := &Order{ranks: make([]int32, len(ranks)), places: make([]int32, len(ranks))}
	for i := range o.places {
		o.places[i] = -1
	}
	for place, r := range ranks {
		if r < 0 || r >= len(ranks) || o.places[r] >= 0 {
			return nil, fmt.Errorf("an order of %d ranks with rank %d at place %d: each of 0 to %d must stand in it once", len(ranks), r, place,
				len(ranks)-1)
		}
		o.ranks[place], o.places[r] = int32(r), int32(place)
	}
	return o, nil
}

// around is the rank d places behind r.
func (o *Order) around(r, d int) int {
	n := len(o.ranks)
	return int(o.ranks[((int(o.places[r])+d)%n+n)%n])
}
