package registration

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

const modelPages = 48

// model is memory, a card and the kernel, of modelPages pages from page 1 on. A page's generation says which memory an address has; a
// registration is for those that it found.
type model struct {
	t           *testing.T
	generation  [modelPages + 1]int
	watched     [modelPages + 1]bool
	refusing    [modelPages + 1]bool // cannot be watched
	changes     []change
	restless    bool // changes are always under way
	deaf        bool
	registered  map[uint64][]int
	last        uint64
	refusals    int // registrations that are refused from now on
	mayRegister int // pages at once; 0: any
}

func (m *model) pages(s span) (first, end int) { return int(s.start / page), int(s.end / page) }

func (m *model) Register(p device.Ptr, n uint64) (Key, error) {
	if m.refusals > 0 {
		m.refusals--
		return Key{}, errors.New("full")
	}
	if m.mayRegister > 0 && n > uint64(m.mayRegister)*page {
		return Key{}, errors.New("too long")
	}
	first, end := m.pages(span{uint64(p), uint64(p) + n})
	m.last++
	m.registered[m.last] = slices.Clone(m.generation[first:end])
	return Key{Local: m.last}, nil
}

func (m *model) Deregister(k Key) error {
	if m.registered[k.Local] == nil {
		m.t.Errorf("key %d is deregistered twice", k.Local)
	}
	delete(m.registered, k.Local)
	return nil
}

func (m *model) start() error { return nil }
func (m *model) stop()        {}

func (m *model) watch(s span) error {
	first, end := m.pages(s)
	if slices.Contains(m.refusing[first:end], true) {
		return unix.EBUSY
	}
	for k := first; k < end; k++ {
		m.watched[k] = true
	}
	return nil
}

func (m *model) unwatch(s span) {
	first, end := m.pages(s)
	for k := first; k < end; k++ {
		m.watched[k] = false
	}
}

func (m *model) settled() (bool, error) { return !m.restless, nil }
func (m *model) news() bool             { return len(m.changes) > 0 }
func (m *model) wait() bool             { return false }

func (m *model) take(do func(change)) {
	all := m.changes
	m.changes = nil
	for _, ch := range all {
		do(ch)
	}
}

// change gives pages other memory, as the program does. The kernel tells it piece by piece of what is watched.
func (m *model) change(s span, how How) {
	first, end := m.pages(s)
	for k := first; k < end; k++ {
		m.generation[k]++
		if m.watched[k] && !m.deaf {
			m.changes = append(m.changes, change{span{uint64(k) * page, uint64(k+1) * page}, how})
		}
		if how != Dropped {
			m.watched[k] = false
		}
	}
}

func newModel(t *testing.T, entries int) (*model, *Cache) {
	m := &model{t: t, registered: map[uint64][]int{}}
	return m, newCache(m, entries, &watch{notice: m})
}

// stale reports whether a region shows other memory than s has now.
func (m *model) stale(r *Region, s span) bool {
	first, end := m.pages(s)
	at, _ := m.pages(r.span)
	return !slices.Equal(m.registered[r.Local][first-at:end-at], m.generation[first:end])
}

// check looks whether the cache and the model agree, with these regions in use.
func (m *model) check(c *Cache, used map[*Region]int) {
	m.t.Helper()
	n, bytes := 0, uint64(0)
	keys := map[uint64]bool{}
	see := func(r *Region) {
		n, bytes = n+1, bytes+r.size()
		keys[r.Local] = true
		if r.users != used[r] {
			m.t.Fatalf("%d users of %v, there are %d", r.users, r.span, used[r])
		}
	}
	wanted := [modelPages + 1]bool{}
	at := uint64(0)
	for _, e := range c.found.entries {
		if e.start < at || e.span != e.region.span {
			m.t.Fatalf("%v at %v, the one before ends at %#x", e.region.span, e.span, at)
		}
		at = e.end
		see(e.region)
		first, end := m.pages(e.span)
		for k := first; k < end; k++ {
			wanted[k] = true
			if !m.watched[k] && len(m.changes) == 0 && !m.deaf {
				m.t.Fatalf("page %d of a region that is found is not watched", k)
			}
		}
	}
	for r := range c.retired {
		see(r)
		for _, s := range r.watched() {
			first, end := m.pages(s)
			for k := first; k < end; k++ {
				wanted[k] = true
			}
		}
	}
	for r := range used {
		if r.state == loose {
			see(r)
		}
	}
	for k, w := range m.watched {
		if w && !wanted[k] {
			m.t.Fatalf("page %d is watched for nobody", k)
		}
	}
	if s := c.stats; s.Regions != n || s.Bytes != bytes || len(m.registered) != n || len(keys) != n {
		m.t.Fatalf("%+v, %d registered with the card, %d found, retired or for one use", s, len(m.registered), n)
	}
	idle := 0
	for r := c.idle.oldest; r != nil; r = r.newer {
		idle++
	}
	if idle > 0 && len(c.found.entries) > c.most {
		m.t.Fatalf("%d regions, %d of them idle, the bound is %d", len(c.found.entries), idle, c.most)
	}
}

// run does what data says: three bytes are a step. It returns how often a request found memory that is not there any more.
func run(t *testing.T, data []byte, prepare func(*model)) (stale int) {
	m, c := newModel(t, 4)
	prepare(m)
	used := map[*Region]int{}
	var order []*Region
	for ; len(data) >= 3; data = data[3:] {
		first := uint64(data[1])%modelPages + 1
		s := span{first * page, min(first+uint64(data[2])%7+1, modelPages+1) * page}
		switch data[0] % 16 {
		case 0, 1, 2, 3, 4, 5:
			m.restless = data[0] >= 240
			r, err := c.Get(device.Ptr(s.start+5), s.size()-9)
			m.restless = false
			if err != nil || !r.covers(s) {
				t.Fatalf("%v for %v: %v", r, s, err)
			}
			if m.stale(r, s) {
				stale++
			}
			used[r]++
			order = append(order, r)
		case 6, 7, 8, 9, 10:
			if len(order) > 0 {
				k := int(data[1]) % len(order)
				r := order[k]
				order = slices.Delete(order, k, k+1)
				if used[r]--; used[r] == 0 {
					delete(used, r)
				}
				r.Put()
			}
		case 11, 12, 13:
			m.change(s, How(data[0]%16-10))
		case 14:
			c.watch.act()
		case 15:
			m.refusing[first] = data[2]&1 != 0
		}
		m.check(c, used)
	}
	c.watch.act()
	for _, r := range order {
		r.Put()
	}
	c.flush()
	m.check(c, nil)
	if len(m.registered) != 0 || len(c.found.entries) != 0 {
		t.Fatalf("%d registrations are left, %d found", len(m.registered), len(c.found.entries))
	}
	return stale
}

// FuzzCache compares the cache with a model of memory whose pages change under it.
func FuzzCache(f *testing.F) {
	f.Add([]byte{0, 1, 3, 6, 0, 0, 11, 2, 1, 0, 1, 3})
	f.Add([]byte{0, 1, 3, 0, 3, 3, 12, 2, 1, 6, 0, 0, 0, 1, 6, 6, 0, 0})
	f.Add([]byte{15, 4, 1, 0, 1, 6, 0, 1, 2, 13, 1, 6, 0, 4, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		if stale := run(t, data[:min(len(data), 1200)], func(*model) {}); stale > 0 {
			t.Errorf("%d requests found memory that is not there any more", stale)
		}
	})
}

func randomSteps(seed uint64) []byte {
	rnd := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, 3*400)
	for k := range data {
		data[k] = byte(rnd.Uint32())
	}
	return data
}

func TestCacheIsNeverStale(t *testing.T) {
	for seed := range uint64(500) {
		if stale := run(t, randomSteps(seed), func(*model) {}); stale > 0 {
			t.Fatalf("seed %d: %d requests found memory that is not there any more", seed, stale)
		}
	}
}

// The test above would see a cache that is not told.
func TestModelSeesStaleness(t *testing.T) {
	stale := 0
	for seed := range uint64(20) {
		stale += run(t, randomSteps(seed), func(m *model) { m.deaf = true })
	}
	if stale == 0 {
		t.Error("a cache that hears of no change has never shown memory that is gone: the model is blind")
	}
}

// A card that takes no long ranges, or is full now and then, costs registrations and nothing else.
func TestCacheOfAPoorCard(t *testing.T) {
	for seed := range uint64(100) {
		if stale := run(t, randomSteps(seed), func(m *model) { m.mayRegister = 7 }); stale > 0 {
			t.Fatalf("seed %d: %d requests found memory that is not there any more", seed, stale)
		}
	}
}
