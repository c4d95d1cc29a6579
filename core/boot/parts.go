package boot

// parts is how n ranks are shared out to several ids: contiguous, the first parts larger by one where it does not come out even. The
// maker of each id reckons alike (meet_roll.c).
type parts struct {
	n, ids int
}

// of is the part of a rank.
func (p parts) of(rank int) int {
	each, larger := p.n/p.ids, p.n%p.ids
	if end := larger * (each + 1); rank >= end {
		return larger + (rank-end)/each
	}
	return rank / (each + 1)
}

// first is the first rank of part k, and n for the part behind the last.
func (p parts) first(k int) int { return k*(p.n/p.ids) + min(k, p.n%p.ids) }

// circle are the ranks that meet in one roll call, in their order: those of a part, or its speakers.
type circle struct {
	parts
	role uint8 // member or speaker
	part int   // of this rank
}

func circleOf(rank, n, ids int) circle {
	p := parts{n, ids}
	return circle{p, member, p.of(rank)}
}

func (c *circle) size() int {
	if c.role == speaker {
		return c.ids
	}
	return c.first(c.part+1) - c.first(c.part)
}

// rankAt is the rank at place i of the circle, counted around it.
func (c *circle) rankAt(i int) int {
	i = (i%c.size() + c.size()) % c.size()
	if c.role == speaker {
		return c.first(i)
	}
	return c.first(c.part) + i
}

// placeOf is the reverse.
func (c *circle) placeOf(rank int) int {
	if c.role == speaker {
		return c.of(rank)
	}
	return rank - c.first(c.part)
}
