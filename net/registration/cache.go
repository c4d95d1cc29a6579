package registration

import (
	"slices"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/log"
)

// Cache is the registrations with one card.
type Cache struct {
	card  Registrar
	most  int // regions; 0: nothing is kept or watched
	watch *watch

	// Guarded by watch.mu.
	found   index
	retired map[*Region]bool
	idle    idle
	stats   Stats
}

// DefaultEntries is a bound that few programs meet: they register tens or hundreds of buffers. At most two mappings more come of each.
const DefaultEntries = 8192

// New returns the cache of a card. It keeps unused registrations as long as there are no more than entries, used ones counted; with 0
// none, and then the memory is not watched either.
func New(card Registrar, entries int) *Cache { return newCache(card, entries, &process) }

func newCache(card Registrar, entries int, w *watch) *Cache {
	c := &Cache{card: card, most: entries, watch: w, retired: map[*Region]bool{}}
	w.mu.Lock()
	w.caches = append(w.caches, c)
	w.mu.Unlock()
	return c
}

// Get returns a registered region that covers n bytes at p. It is counted: each Get has its Put. A region that is there already costs
// no allocation.
func (c *Cache) Get(p device.Ptr, n uint64) (*Region, error) {
	s, err := pagesOf(p, n)
	if err != nil {
		return nil, err
	}
	if c.most == 0 || !c.watch.current() {
		return c.once(s)
	}
	c.watch.mu.Lock()
	r := c.found.find(s)
	if r == nil {
		return c.add(s)
	}
	if r.users == 0 {
		c.idle.remove(r)
	}
	r.users++
	c.stats.Hits++
	pending := r.pending
	c.watch.mu.Unlock()
	if pending {
		<-r.ready
		if r.err != nil {
			return c.without(r, s)
		}
	}
	return r, nil
}

// Put ends one use.
func (r *Region) Put() {
	c := r.cache
	var out dropped
	c.watch.mu.Lock()
	if r.users--; r.users == 0 {
		if r.state == live {
			c.idle.push(r)
			c.trim(&out)
		} else {
			delete(c.retired, r)
			c.drop(r, &out)
		}
	}
	c.watch.mu.Unlock()
	out.deregister()
}

// Hold is Get for a registration that lasts. told is called once, from a thread of the library, when memory of the range is gone
// before Release.
func (c *Cache) Hold(p device.Ptr, n uint64, told func(How)) (*Hold, error) {
	r, err := c.Get(p, n)
	if err != nil {
		return nil, err
	}
	s, _ := pagesOf(p, n)
	h := &Hold{region: r, span: s, told: told}
	c.watch.mu.Lock()
	h.at = len(r.holds)
	r.holds = append(r.holds, h)
	c.watch.mu.Unlock()
	return h, nil
}

// Release ends it.
func (h *Hold) Release() {
	r := h.region
	mu := &r.cache.watch.mu
	mu.Lock()
	last := len(r.holds) - 1
	r.holds[h.at] = r.holds[last]
	r.holds[h.at].at = h.at
	r.holds[last] = nil
	r.holds = r.holds[:last]
	mu.Unlock()
	r.Put()
}

// Stats looks at the cache.
func (c *Cache) Stats() Stats {
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	return c.stats
}

// add makes a region of s and of those that it overlaps, whose place it takes. mu is held, and released.
func (c *Cache) add(s span) (*Region, error) {
	all, err := c.watch.start(c.found.union(s))
	if err != nil {
		c.watch.mu.Unlock()
		log.InfoOnce(log.Reg, "registration: "+err.Error(), "the %d bytes at %#x, and others like these, are registered for one use only: %v",
			s.size(), s.start, err)
		return c.once(s)
	}
	var out dropped
	replaced := c.found.take(all)
	r := &Region{span: all, cache: c, users: 1, pending: true, ready: make(chan struct{})}
	c.found.put(r)
	c.count(r)
	for _, o := range replaced { // now, when r is there to be seen: their memory stays watched
		c.retire(o, &out)
	}
	c.trim(&out)
	c.watch.mu.Unlock()
	out.deregister()

	key, err := c.register(all)
	c.watch.mu.Lock()
	r.Key, r.err, r.pending = key, err, false
	if err != nil && r.state == live {
		c.found.take(r.span)
		c.retire(r, &out)
	}
	c.watch.mu.Unlock()
	close(r.ready)
	if err != nil {
		return c.without(r, s)
	}
	return r, nil
}

// without is what becomes of a Get whose region r the card has refused: r may have been more than s.
func (c *Cache) without(r *Region, s span) (*Region, error) {
	r.Put()
	if r.span == s {
		return nil, r.err
	}
	return c.once(s)
}

// once registers s for one use.
func (c *Cache) once(s span) (*Region, error) {
	key, err := c.register(s)
	if err != nil {
		return nil, err
	}
	r := &Region{Key: key, span: s, cache: c, users: 1, state: loose}
	c.watch.mu.Lock()
	c.count(r)
	c.stats.Unkept++
	c.watch.mu.Unlock()
	return r, nil
}

// register asks the card. One that refuses may be full: it is asked again without what is unused.
func (c *Cache) register(s span) (Key, error) {
	key, err := c.card.Register(device.Ptr(s.start), s.size())
	if err != nil && c.flush() {
		key, err = c.card.Register(device.Ptr(s.start), s.size())
	}
	return key, err
}

// flush gives back all that is unused, and reports whether that was anything.
func (c *Cache) flush() bool {
	var out dropped
	c.watch.mu.Lock()
	for c.idle.oldest != nil {
		c.evict(&out)
	}
	c.watch.mu.Unlock()
	out.deregister()
	return out != nil
}

// What follows is called with mu held.

func (c *Cache) count(r *Region) {
	c.stats.Misses++
	c.stats.Regions++
	c.stats.Bytes += r.size()
}

// trim keeps the bound.
func (c *Cache) trim(out *dropped) {
	for len(c.found.entries) > c.most && c.idle.oldest != nil {
		c.evict(out)
	}
}

// evict gives up the region that has been unused for the longest time.
func (c *Cache) evict(out *dropped) {
	r := c.idle.oldest
	c.idle.remove(r)
	c.found.take(r.span)
	c.drop(r, out)
}

// retire is for a region that is in the index no more.
func (c *Cache) retire(r *Region, out *dropped) {
	if r.users > 0 {
		r.state = retired
		c.retired[r] = true
		return
	}
	c.idle.remove(r)
	c.drop(r, out)
}

// lose acts upon a change of memory, and collects whom to tell.
func (c *Cache) lose(ch change, out *dropped, tell *[]func()) {
	for _, r := range c.found.take(ch.span) {
		c.stats.Lost++
		if r.users == 0 {
			r.leave(ch)
		}
		c.retire(r, out)
	}
	for r := range c.retired {
		if !r.overlaps(ch.span) {
			continue
		}
		r.leave(ch)
		for _, h := range r.holds {
			if told := h.told; told != nil && ch.how != Unknown && h.overlaps(ch.span) {
				h.told = nil
				*tell = append(*tell, func() { told(ch.how) })
			}
		}
	}
}

// leave notes what is watched no more.
func (r *Region) leave(ch change) {
	if ch.how == Unmapped || ch.how == Moved {
		if !slices.ContainsFunc(r.gone, func(g span) bool { return g.covers(ch.span) }) {
			r.gone = append(r.gone, ch.span)
		}
	}
}

// drop is for a region that nobody uses or finds.
func (c *Cache) drop(r *Region, out *dropped) {
	c.stats.Regions--
	c.stats.Bytes -= r.size()
	if r.state != loose {
		c.watch.end(r)
	}
	if r.err == nil {
		*out = append(*out, r)
	}
}

// dropped are regions that the card is to forget, once mu is not held.
type dropped []*Region

func (d dropped) deregister() {
	for _, r := range d {
		if err := r.cache.card.Deregister(r.Key); err != nil {
			log.Warn("%d bytes at %#x stay registered with the card: %v", r.size(), r.start, err)
		}
	}
}
