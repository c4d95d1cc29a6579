package registration

import "slices"

// index finds regions by address. They never overlap.
type index struct{ entries []entry } // ascending

// entry has the region's span beside it: a search touches no region.
type entry struct {
	span
	region *Region
}

// after is the place of the first entry that ends above an address.
func (x *index) after(p uint64) int {
	lo, hi := 0, len(x.entries)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if x.entries[mid].end <= p {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// find returns the region that covers all of s, or nil.
func (x *index) find(s span) *Region {
	if k := x.after(s.start); k < len(x.entries) && x.entries[k].covers(s) {
		return x.entries[k].region
	}
	return nil
}

// overlapping are the entries that have some of s.
func (x *index) overlapping(s span) []entry {
	from := x.after(s.start)
	to := from
	for to < len(x.entries) && x.entries[to].start < s.end {
		to++
	}
	return x.entries[from:to]
}

// union is s together with the regions that have some of it.
func (x *index) union(s span) span {
	if over := x.overlapping(s); len(over) > 0 {
		return s.with(over[0].span).with(over[len(over)-1].span)
	}
	return s
}

// take takes out the regions that have some of s.
func (x *index) take(s span) (out []*Region) {
	over := x.overlapping(s)
	if len(over) == 0 {
		return nil
	}
	for k := range over {
		out = append(out, over[k].region)
	}
	from := x.after(s.start)
	x.entries = slices.Delete(x.entries, from, from+len(out))
	return out
}

// put enters a region that overlaps none.
func (x *index) put(r *Region) {
	x.entries = slices.Insert(x.entries, x.after(r.start), entry{r.span, r})
}
