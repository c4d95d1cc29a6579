package proto

import "fmt"

// Order is in which order rings pass the ranks, and trees take them: neighbours are near each other where it is well chosen (package
// graph). Channels may have different orders, so that they use different links; with more channels than orders these come again. It is
// immutable.
type Order struct {
	rings []ring
}

type ring struct {
	ranks  []int32 // by place
	places []int32 // by rank
}

// NewOrder makes an order of rings, one or more, each of which must hold each of the ranks 0..len-1 once.
func NewOrder(rings ...[]int) (*Order, error) {
	o := &Order{}
	for _, ranks := range rings {
		r, err := newRing(ranks)
		if err != nil {
			return nil, err
		}
		if o.rings = append(o.rings, r); len(ranks) != len(rings[0]) {
			return nil, fmt.Errorf("rings of %d and of %d ranks in one order", len(rings[0]), len(ranks))
		}
	}
	if len(rings) == 0 {
		return nil, fmt.Errorf("an order without a ring")
	}
	return o, nil
}

func newRing(ranks []int) (ring, error) {
	o := ring{ranks: make([]int32, len(ranks)), places: make([]int32, len(ranks))}
	for i := range o.places {
		o.places[i] = -1
	}
	for place, r := range ranks {
		if r < 0 || r >= len(ranks) || o.places[r] >= 0 {
			return ring{}, fmt.Errorf("an order of %d ranks with rank %d at place %d: each of 0 to %d must stand in it once", len(ranks), r,
				place, len(ranks)-1)
		}
		o.ranks[place], o.places[r] = int32(r), int32(place)
	}
	return o, nil
}

// of is how many ranks the rings pass.
func (o *Order) of() int { return len(o.rings[0].ranks) }

// place is where rank r stands on a channel.
func (o *Order) place(channel, r int) int { return int(o.rings[channel%len(o.rings)].places[r]) }

// around is the rank d places behind r on a channel.
func (o *Order) around(channel, r, d int) int {
	ring := &o.rings[channel%len(o.rings)]
	n := len(ring.ranks)
	return int(ring.ranks[((int(ring.places[r])+d)%n+n)%n])
}
