package shm

import "slices"

// How ports get staging from the arena and lose it again. All of it is off the hot path and under the arena's mu.

// attach gives o staging of its own.
func (a *arena) attach(o *out, slots, size uint64) error {
	r, err := a.alloc(slots*size, o.ports)
	if err != nil {
		return err
	}
	o.region, o.staging, o.slots, o.size = r, a.base+uintptr(r.off), slots, size
	return nil
}

// detach takes o's staging back. Nothing lies in it, or nobody reads it any more.
func (a *arena) detach(o *out) {
	a.mu.Lock()
	a.strip(o)
	a.mu.Unlock()
}

// count notes that p holds one region more. mu is held.
func (a *arena) count(p *Ports) {
	if p == nil {
		return
	}
	if p.held++; p.held == 1 {
		a.owners = append(a.owners, p)
	}
}

// strip puts o's region back. mu is held.
func (a *arena) strip(o *out) {
	a.put(o.region)
	o.region, o.staging, o.slots, o.size = region{}, 0, 0, 0
	if o.ports.held--; o.ports.held == 0 {
		i := slices.Index(a.owners, o.ports)
		a.owners = slices.Delete(a.owners, i, i+1)
	}
}

// reclaim takes back at least n bytes from ports at rest, those first that have rested longest. mu is held.
func (a *arena) reclaim(n uint64, by *Ports) {
	want := a.inUse - min(n, a.inUse)
	a.reclaimRooms(want)
	passed := uint64(0)
	for a.inUse > want {
		p := a.longestRested(passed, by)
		if p == nil {
			return
		}
		passed = p.lastRest.Load()
		a.takeFrom(p)
	}
}

// longestRested is the owner with the oldest rest after the given time, nil if there is none. It may be in use again.
func (a *arena) longestRested(after uint64, by *Ports) *Ports {
	var oldest *Ports
	since := ^uint64(0)
	for _, p := range a.owners {
		if t := p.lastRest.Load(); p != by && t > after && t < since {
			oldest, since = p, t
		}
	}
	return oldest
}

// takeFrom strips all of p's ports that are drained, unless an operation has begun on it.
func (a *arena) takeFrom(p *Ports) {
	if !p.state.CompareAndSwap(resting, reclaimed) {
		return
	}
	a.stripDrained(p)
	p.state.Store(resting)
}

// stripDrained takes staging back from the ports of p in which nothing lies or is being written. Nobody else uses p meanwhile.
func (a *arena) stripDrained(p *Ports) {
	for _, o := range p.outs {
		if o.staging != 0 && !o.reserved && o.drained() {
			a.strip(o)
		}
	}
}

// retire is a segment's end as far as its user goes. False: others have yet to read of it, bury will unmap it.
func (a *arena) retire(s *Segment) bool {
	a.mu.Lock()
	done := a.empty(s)
	if !done {
		a.dead = append(a.dead, s)
	}
	a.mu.Unlock()
	if done {
		s.unmap()
	}
	return done
}

// empty strips the drained ports of a retired segment and reports whether none is left.
func (a *arena) empty(s *Segment) bool {
	left := 0
	if s.room.len != 0 {
		s.room.give = nil
		if s.RoomRead() {
			a.stripRoom(s)
		} else {
			left++
		}
	}
	for _, o := range s.ports.outs {
		switch {
		case o.staging == 0:
		case o.drained():
			a.strip(o)
		default:
			left++
		}
	}
	return left == 0
}

// burials is how many retired segments wait for their readers.
func (a *arena) burials() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.dead)
}

// bury unmaps the retired segments that are drained now.
func (a *arena) bury() {
	a.mu.Lock()
	var done []*Segment
	a.dead = slices.DeleteFunc(a.dead, func(s *Segment) bool {
		if !a.empty(s) {
			return false
		}
		done = append(done, s)
		return true
	})
	a.mu.Unlock()
	for _, s := range done {
		s.unmap()
	}
}
