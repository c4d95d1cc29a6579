package arrange

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/pack"
	"hccl.dev/hccl/internal/plural"
)

// Solution is what one rank has found for all. It is made of what all ranks know, so that each can verify it.
type Solution struct {
	Packings []pack.RingPacking // of the kinds of hosts that have links, in the order of their first hosts; no Loads
	Width    float64            // GB/s of a channel
	Counts   []int              // of channels of each order, in the order in which Join finds these
	Orders   [sha256.Size]byte  // of the orders that follow
	None     string             // why there are no rings; "": there are
}

// Solve packs rings into the links of the hosts. It takes a second or two at the most: kinds of hosts share the effort.
func (a *Arrangement) Solve() (s Solution) {
	kinds, sites, err := a.merge()
	if err != nil {
		return Solution{None: err.Error()}
	}
	effort := pack.Thorough
	effort.Work /= int64(len(kinds))
	for _, k := range kinds {
		if k.network != nil {
			p := pack.Rings(k.network, len(sites), pack.Bound(k.network, len(sites)), effort)
			p.Loads = nil
			s.Packings = append(s.Packings, p)
		}
	}
	found, err := joined(kinds, sites, s.Packings)
	if err != nil {
		return Solution{None: err.Error()}
	}
	weights := make([]float64, len(found))
	for k := range found {
		weights[k] = found[k].weight
	}
	if s.Width, s.Counts = few(weights); len(found) == 0 {
		return Solution{None: "no ring can pass the links of all hosts"}
	}
	s.Orders = fingerprint(found)
	return s
}

// few makes channels of one bandwidth of weighted orders, a wider one there more often: no more of them than keep nearly all of the
// weights, since each costs every rank steps.
func few(weights []float64) (width float64, counts []int) {
	const enough = 0.9
	total := 0.0
	for _, w := range weights {
		total += w
	}
	for channels := 1; channels <= most; channels++ {
		width, counts = ncclxml.Equal(weights, channels)
		kept := 0
		for _, n := range counts {
			kept += n
		}
		if float64(kept)*width >= enough*total {
			break
		}
	}
	return width, counts
}

// Take verifies what another rank has found, and makes orders of it. An error says what does not hold.
func (a *Arrangement) Take(s *Solution) (Result, error) {
	if s.None != "" {
		a.not(s.None)
		return a.Near(), nil
	}
	kinds, sites, err := a.merge()
	if err != nil {
		return Result{}, err
	}
	if err := verify(kinds, len(sites), s.Packings); err != nil {
		return Result{}, err
	}
	found, err := joined(kinds, sites, s.Packings)
	if err != nil {
		return Result{}, err
	}
	if err := s.fits(found); err != nil {
		return Result{}, err
	}
	r := Result{Width: s.Width, By: a.says(s)}
	for k, o := range found {
		for c := range s.Counts[k] {
			r.Orders = append(r.Orders, o.ranks)
			r.Ways = append(r.Ways, a.way(o.rings[c%len(o.rings)], s.Packings))
		}
	}
	return r, nil
}

// verify counts anew what the packings put on the links.
func verify(kinds []kind, hosts int, packings []pack.RingPacking) error {
	for _, k := range kinds {
		if k.network == nil {
			continue
		}
		if len(packings) == 0 {
			return fmt.Errorf("there are fewer packings than kinds of hosts")
		}
		p := &packings[0]
		if err := p.Verify(k.network, hosts); err != nil {
			return err
		}
		if !(p.Bus > 0) || len(p.Rings) == 0 {
			return fmt.Errorf("%d rings of %g GB/s together", len(p.Rings), p.Bus)
		}
		packings = packings[1:]
	}
	if len(packings) > 0 {
		return fmt.Errorf("there are more packings than kinds of hosts")
	}
	return nil
}

// fits checks the channels against the orders that were joined here.
func (s *Solution) fits(found []order) error {
	if len(s.Counts) != len(found) || s.Orders != fingerprint(found) {
		return fmt.Errorf("its rings join to %d orders here, and to %d or to others there", len(found), len(s.Counts))
	}
	sum := 0
	for k, n := range s.Counts {
		if sum += n; n < 0 || n > most || float64(n)*s.Width > found[k].weight*1.0001 {
			return fmt.Errorf("%d channels of %g GB/s for an order that carries %g", n, s.Width, found[k].weight)
		}
	}
	if sum < 1 || sum > most || !(s.Width > 0) {
		return fmt.Errorf("%d channels of %g GB/s: want 1 to %d", sum, s.Width, most)
	}
	return nil
}

// order is an order of ranks, and what rings of it carry together: over host links that others do not use, yet on one channel as well
// as on several, since a slice takes any card that is free.
type order struct {
	ranks  []int
	weight float64
	rings  [][]int // of each ring that has it: for each kind the ring of its packing
}

// joined are the orders that the hosts' packings join to.
func joined(kinds []kind, sites []pack.Site, packings []pack.RingPacking) (found []order, err error) {
	all, err := whole(kinds, packings)
	if err != nil {
		return nil, err
	}
	channels, err := pack.Join(all, sites)
	for _, c := range channels {
		at := slices.IndexFunc(found, func(o order) bool { return slices.Equal(o.ranks, c.Order) })
		if at < 0 {
			at = len(found)
			found = append(found, order{ranks: c.Order})
		}
		found[at].weight += c.Weight
		found[at].rings = append(found[at].rings, c.Rings)
	}
	return found, err
}

// whole has a packing for each kind: for those without links one ring by places, wider than any other.
func whole(kinds []kind, packings []pack.RingPacking) (all []pack.RingPacking, err error) {
	const wide = 1e9
	for _, k := range kinds {
		switch {
		case k.network == nil:
			gpus := make([]int, len(k.ranks))
			for g := range gpus {
				gpus[g] = g
			}
			ring := pack.Ring{Weight: wide, Segments: []pack.Segment{{In: -1, Out: -1, GPUs: gpus}}}
			all = append(all, pack.RingPacking{Rings: []pack.Ring{ring}, Bus: wide})
		case !(packings[0].Bus > 0):
			return nil, fmt.Errorf("no ring can pass the links of all hosts")
		default:
			all, packings = append(all, packings[0]), packings[1:]
		}
	}
	return all, nil
}

// fingerprint is the same for the same orders.
func fingerprint(found []order) [sha256.Size]byte {
	var b []byte
	for _, o := range found {
		for _, r := range o.ranks {
			b = binary.LittleEndian.AppendUint32(b, uint32(r))
		}
	}
	return sha256.Sum256(b)
}

// way is by which ports rings, one for each kind of host, pass the hosts.
func (a *Arrangement) way(rings []int, packings []pack.RingPacking) Way {
	at := make([]int, len(a.kinds)) // of each kind in packings
	n := 0
	for k := range a.kinds {
		if at[k] = n; a.kinds[k].network != nil {
			n++
		}
	}
	w := make(Way, len(a.sites))
	for h, s := range a.sites {
		hop := &w[a.ranks[a.hosts[h].ranks[0]].Host]
		if hop.In, hop.Out = -1, -1; a.kinds[s.Kind].network == nil {
			continue
		}
		segments := packings[at[s.Kind]].Rings[rings[s.Kind]].Segments
		if in, out := segments[0].In, segments[len(segments)-1].Out; in >= 0 && out >= 0 {
			hop.In, hop.Out = a.kinds[s.Kind].ports[in], a.kinds[s.Kind].ports[out]
		}
	}
	return w
}

// says tells what was found, for people.
func (a *Arrangement) says(s *Solution) string {
	var bus, bound float64
	searched := 0
	for _, p := range s.Packings {
		if searched++; searched == 1 || p.Bus < bus {
			bus, bound = p.Bus, max(p.Bound, p.Cross)
		}
	}
	channels := 0
	for _, n := range s.Counts {
		channels += n
	}
	text := fmt.Sprintf("the links between GPUs: %s of %.4g GB/s", plural.Of(channels, "channel"), s.Width)
	if bound > 0 {
		text += fmt.Sprintf(", rings of %.4g GB/s of a bound of %.4g", bus, bound)
	}
	if a.whyNot != "" {
		text += " (" + a.whyNot + ": its ranks go by their places)"
	}
	return text + a.above()
}
