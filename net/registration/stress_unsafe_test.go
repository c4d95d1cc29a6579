package registration

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

// splicing is a card that keeps pages as a real one does: the kernel holds those that an address has when it is registered, in a pipe,
// whatever the program maps there later. What is in them can be looked at.
type splicing struct {
	mu     sync.Mutex
	last   uint64
	pipes  map[uint64][2]int
	second [2]int // for a copy of a pipe
}

const populateWrite = 23 // MADV_POPULATE_WRITE: a card writes, so that each page is there and is its own

func newSplicing(t *testing.T) *splicing {
	s := &splicing{pipes: map[uint64][2]int{}}
	if err := unix.Pipe2(s.second[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		closePipe(s.second)
		if len(s.pipes) != 0 {
			t.Errorf("%d registrations are left with the card", len(s.pipes))
		}
	})
	return s
}

func closePipe(p [2]int) { _, _ = unix.Close(p[0]), unix.Close(p[1]) }

func (s *splicing) Register(p device.Ptr, n uint64) (Key, error) {
	if err := madvise(p, n, populateWrite); err != nil {
		return Key{}, err
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return Key{}, err
	}
	vector := [2]uint64{uint64(p), n}
	got, err := call(unix.SYS_VMSPLICE, uintptr(pipe[1]), uintptr(unsafe.Pointer(&vector)), 1, 0)
	if err != nil || uint64(got) != n {
		closePipe(pipe)
		return Key{}, errors.Join(errors.New("no such memory"), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.pipes[s.last] = pipe
	return Key{Local: s.last}, nil
}

func (s *splicing) Deregister(k Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	closePipe(s.pipes[k.Local])
	delete(s.pipes, k.Local)
	return nil
}

// look returns the first word of each page of part, as the card sees it.
func (s *splicing) look(r *Region, part span) []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := call(unix.SYS_TEE, uintptr(s.pipes[r.Local][0]), uintptr(s.second[1]), uintptr(r.size()), 0)
	b := make([]byte, r.size())
	if err != nil || uint64(n) != r.size() {
		return nil
	}
	for k := 0; k < len(b); {
		n, err := unix.Read(s.second[0], b[k:])
		if err != nil {
			return nil
		}
		k += n
	}
	var words []uint64
	for at := part.start; at < part.end; at += page {
		words = append(words, binary.NativeEndian.Uint64(b[at-r.start:]))
	}
	return words
}

const (
	slots     = 3
	slotPages = 12
	arena     = device.Ptr(0x5b0000000000)
)

// storm has threads map memory at the same few addresses, mark it, register parts of it and look at it with the card's eyes, and get rid
// of it in all ways. As soon as one has unmapped a slot, while it may still be inside the call, the other of the slot maps it. Others
// only get and put. It returns how often the card saw other memory than the program.
func storm(t *testing.T, c *Cache, card *splicing, rounds int) (stale int64) {
	var marks, wrong atomic.Int64
	var owners, others sync.WaitGroup
	done := make(chan struct{})
	for k := range 2 * slots {
		owners.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(k), 2))
			for range rounds {
				wrong.Add(own(t, c, card, rnd, k%slots, &marks))
			}
		})
	}
	for k := range 1 {
		others.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(k), 3))
			for {
				select {
				case <-done:
					return
				default:
				}
				// Not where memory is dropped: to ask for memory while it is dropped is the program's mistake.
				if r, err := c.Get(somewhere(rnd, rnd.IntN(slots/2)*2)); err == nil {
					r.Put()
				}
			}
		})
	}
	owners.Wait()
	close(done)
	others.Wait()
	return wrong.Load()
}

func slot(k int) device.Ptr { return arena + device.Ptr(uint64(k)*2*slotPages*page) }

// somewhere is a part of a slot.
func somewhere(rnd *rand.Rand, k int) (device.Ptr, uint64) {
	first := rnd.Uint64N(slotPages)
	return slot(k) + device.Ptr(first*page), (rnd.Uint64N(slotPages-first) + 1) * page
}

// own has the slot k for a while.
func own(t *testing.T, c *Cache, card *splicing, rnd *rand.Rand, k int, marks *atomic.Int64) (wrong int64) {
	p, n := slot(k), slotPages*page
	for {
		err := mmap(p, n, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, -1)
		if err == nil {
			break
		}
		if err != unix.EEXIST {
			t.Error(err)
			return 0
		}
		yield()
	}
	for {
		mark := uint64(marks.Add(1))
		for at := uint64(0); at < n; at += page {
			binary.NativeEndian.PutUint64(device.Bytes(p, n)[at:], mark)
		}
		for range rnd.IntN(3) + 1 {
			at, n := somewhere(rnd, k)
			part := span{uint64(at), uint64(at) + n}
			r, err := c.Get(at, n)
			if err != nil {
				t.Error(err)
				continue
			}
			for _, w := range card.look(r, part) {
				if w != mark {
					wrong++
				}
			}
			r.Put()
		}
		var err error
		switch how := rnd.IntN(8); {
		case how < 2: // from here on the slot is another's
			if err = munmap(p, n); err == nil {
				return wrong
			}
		case how == 2:
			away := p + device.Ptr(n)
			err = mremap(p, n, n, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, away)
			_ = munmap(away, n)
			if err == unix.EFAULT { // what is registered in part is several mappings, of which some may have moved
				err = munmap(p, n)
			}
			if err == nil {
				return wrong
			}
		case how < 5 || k%2 == 0:
			err = mmap(p, n, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1)
		default:
			err = madvise(p, n, unix.MADV_DONTNEED)
		}
		if err != nil {
			t.Error(err)
			return wrong
		}
	}
}

func TestStorm(t *testing.T) {
	needNotice(t)
	card := newSplicing(t)
	c := New(card, 8)
	defer leaveWatch(c)
	start := time.Now()
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	if stale := storm(t, c, card, rounds); stale > 0 {
		t.Errorf("the card saw %d pages that were not the program's any more", stale)
	}
	process.act()
	s := c.Stats()
	t.Logf("%v in %v; %d for one use", s, time.Since(start), s.Unkept)
	if s.Hits == 0 || s.Lost == 0 {
		t.Error("nothing was found, or nothing lost")
	}
}

// deaf is a kernel that tells nothing.
type deaf struct{ kernel }

func (deaf) start() error           { return nil }
func (deaf) settled() (bool, error) { return true, nil }
func (deaf) news() bool             { return false }
func (deaf) wait() bool             { return false }
func (deaf) take(func(change))      {}

// The test above would see a registration that is no longer right.
func TestStormSeesStaleness(t *testing.T) {
	needNotice(t)
	card := newSplicing(t)
	c := newCache(card, 8, &watch{notice: &deaf{*process.notice.(*kernel)}})
	if storm(t, c, card, 20) == 0 {
		t.Error("without notice the card has seen nothing but the program's memory: the test is blind")
	}
	c.flush()
}
