package pack

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Site is a host of a job: which of the kinds of hosts it is, and the rank on each of its GPUs, in the order of the kind's GPUs.
type Site struct {
	Kind  int
	Ranks []int
}

// Channel is one ring through all ranks of a job. It passes the sites one after the other, so that it leaves each of them once for each
// segment that its kind of host is cut into, and with one segment crosses every boundary once.
type Channel struct {
	Weight float64 // GB/s of bus bandwidth
	Order  []int   // ranks
	Rings  []int   // for each kind the ring of its packing that is taken there, with its ports
}

// Kinds tells which networks are the same: for each its kind, and for each kind the first network. Hosts that are alike are searched
// once.
func Kinds(hosts []*Network) (kind []int, first []*Network) {
	known := map[[sha256.Size]byte]int{}
	for _, n := range hosts {
		sum := n.Hash()
		k, ok := known[sum]
		if !ok {
			k = len(first)
			known[sum] = k
			first = append(first, n)
		}
		kind = append(kind, k)
	}
	return kind, first
}

// Hash is the same for networks that are, numbering included.
func (n *Network) Hash() [sha256.Size]byte {
	h := sha256.New()
	var b []byte
	put := func(v ...int) {
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		}
	}
	put(n.Nodes, len(n.Links), len(n.GPUs), len(n.Nets))
	for _, l := range n.Links {
		put(l.From, l.To, int(math.Float64bits(l.Cap)))
	}
	put(n.GPUs...)
	put(n.Nets...)
	for _, row := range n.Routes {
		for _, route := range row {
			put(len(route))
			for _, u := range route {
				put(u.Link, int(math.Float64bits(u.Factor)))
			}
		}
	}
	if n.Cut {
		put(1)
	}
	h.Write(b)
	return [sha256.Size]byte(h.Sum(nil))
}

// Join makes channels of a job's sites from the ring packings of their kinds, each found for as many hosts as there are sites. What all
// kinds can pass, the job can. Rings are taken by their ports' numbers, so that where kinds have rings of equal weights by
// equal ports, rails meet their like:
//
//	kind 0   [ring by net0    ][ring by net1    ]
//	kind 1   [by net0 ][net1  ][net2  ][by net3 ]
//	         |channel0|channel1|ch 2  |channel3 |
func Join(kinds []RingPacking, sites []Site) ([]Channel, error) {
	rings, total := make([][]int, len(kinds)), math.Inf(1)
	for k := range kinds {
		rings[k] = kinds[k].byPort()
		total = min(total, kinds[k].Bus)
	}
	for s, site := range sites {
		if site.Kind < 0 || site.Kind >= len(kinds) {
			return nil, fmt.Errorf("site %d is of kind %d of %d", s, site.Kind, len(kinds))
		}
	}
	if len(sites) == 0 || !(total > 0) {
		return nil, nil
	}
	var all []Channel
	at, left := make([]int, len(kinds)), make([]float64, len(kinds)) // the ring of each kind, and what is left of it
	for k := range left {
		left[k] = kinds[k].part(rings[k], 0)
	}
	for done := false; !done; {
		c := Channel{Weight: total * slices.Min(left)}
		for k := range kinds {
			c.Rings = append(c.Rings, rings[k][at[k]])
		}
		if c.Weight > 1e-6*total {
			if err := c.pass(kinds, sites); err != nil {
				return nil, err
			}
			all = append(all, c)
		}
		used := slices.Min(left)
		for k := range kinds {
			if left[k] -= used; left[k] <= 1e-9 {
				if at[k]++; at[k] == len(rings[k]) {
					done = true
					break
				}
				left[k] = kinds[k].part(rings[k], at[k])
			}
		}
	}
	return all, nil
}

// byPort is the rings in the order of the ports that they come in by.
func (p *RingPacking) byPort() []int {
	order := make([]int, len(p.Rings))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(p.Rings[a].Segments[0].In, p.Rings[b].Segments[0].In)
	})
	return order
}

// part is a ring's part of all.
func (p *RingPacking) part(order []int, k int) float64 { return p.Rings[order[k]].Weight / p.Bus }

// pass lists the ranks in the order in which the channel comes to them.
func (c *Channel) pass(kinds []RingPacking, sites []Site) error {
	for n, site := range sites {
		for _, s := range kinds[site.Kind].Rings[c.Rings[site.Kind]].Segments {
			for _, g := range s.GPUs {
				if g >= len(site.Ranks) {
					return fmt.Errorf("site %d has %d ranks, its kind has GPU %d", n, len(site.Ranks), g)
				}
				c.Order = append(c.Order, site.Ranks[g])
			}
		}
	}
	return nil
}
