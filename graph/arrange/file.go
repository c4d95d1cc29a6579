package arrange

import (
	"fmt"
	"slices"
)

// asked takes the rings that files ask for: of each host those of its first rank that has any.
func (a *Arrangement) asked() (any bool) {
	for k := range a.hosts {
		h := &a.hosts[k]
		byNumber := slices.Sorted(slices.Values(h.ranks))
		from := slices.IndexFunc(byNumber, func(r int) bool { return len(a.ranks[r].Rings) > 0 })
		if from < 0 {
			continue
		}
		dev := a.devs(byNumber)
		for _, ring := range a.ranks[byNumber[from]].Rings {
			order, err := follow(ring, dev)
			if err != nil {
				a.faults = append(a.faults, Fault{byNumber[from], fmt.Sprintf("line %d: the channel is not used: %v; let it pass each of the %d "+
					"once", ring.Line, err, len(h.ranks))})
			} else if len(h.rings) < most {
				h.rings = append(h.rings, order)
			}
		}
		if h.rings != nil {
			h.by, any = fmt.Sprintf("NCCL_GRAPH_FILE of rank %d", byNumber[from]), true
		}
	}
	return any
}

// devs are the ranks of a host by the numbers that a file has for them.
func (a *Arrangement) devs(ranks []int) map[int]int {
	dev := map[int]int{}
	for k, r := range ranks {
		n := k
		if g := a.gpus[r]; g != nil {
			n = g.Number
		}
		dev[n] = r
	}
	return dev
}

// follow is a ring in ranks. A file may be of more ranks than there are; all that are there must be in it.
func follow(ring Ring, dev map[int]int) (order []int, err error) {
	seen := map[int]bool{}
	for _, d := range ring.Devs {
		r, here := dev[d]
		if seen[d] {
			return nil, fmt.Errorf("it passes %d twice", d)
		}
		if seen[d] = true; here {
			order = append(order, r)
		}
	}
	if len(order) < len(dev) {
		return nil, fmt.Errorf("it passes %d of the %d ranks on this host", len(order), len(dev))
	}
	return order, nil
}
