package shm

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ArenaLimit is the cap of this process's arena in bytes, of which a power of two is used. It is read when the arena is made.
var ArenaLimit uint64 = 512 << 20

const (
	unitSize  = 16 << 10 // the smallest block of the arena
	bellBytes = 64 << 10 // the arena begins with the bells, which peers map for writing
	softBytes = 8 << 20  // above this, ports at rest give up their staging before the arena grows
	idleMost  = 4 << 20  // above this, free memory goes back to the system,
	idleLeast = 2 << 20  // down to this
)

// arena is this process's memory for staging. Peers map all of it once, for reading, when they connect.
//
//	| bells, 64 KiB | blocks of 16 KiB << k, with pages only where they are in use or idle |
type arena struct {
	fd     int
	base   uintptr
	size   uint64
	reason string // why it is a file; "": a memfd

	mu     sync.Mutex
	blocks *buddy     // guarded by mu, as all below
	used   []uint64   // bit per unit: handed out
	paged  []uint64   // bit per unit: has pages
	inUse  uint64     // bytes handed out
	idle   uint64     // bytes that have pages and are free
	owners []*Ports   // that hold regions
	rooms  []*Segment // that have a room, the oldest first
	dead   []*Segment // closed, with slices that are still to be read

	clock atomic.Uint64 // counts operations' ends, to tell which ports have rested longest
}

// region is a block of the arena.
type region struct {
	off, len uint64
	order    int
}

func newArena(limit uint64) (*arena, error) {
	size := uint64(1) << (bits.Len64(max(limit, 1<<20)) - 1)
	for ; ; size /= 4 { // a limit on address space may forbid the first choice
		a, err := tryArena(size)
		if err == nil || size < 64<<20 {
			return a, err
		}
	}
}

func tryArena(size uint64) (*arena, error) {
	fd, reason, err := newMemory(size)
	if err != nil {
		return nil, err
	}
	base, err := mapMemory(fd, size, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("mapping an arena of %d MiB: %w", size>>20, err)
	}
	units := size / unitSize
	a := &arena{fd: fd, base: base, size: size, reason: reason, blocks: newBuddy(bits.Len64(units) - 1)}
	a.used, a.paged = make([]uint64, (units+63)/64), make([]uint64, (units+63)/64)
	_, err = a.take(bellBytes) // the first block: at offset 0
	if err == nil && reason != "" {
		err = a.probe()
	}
	keep(fd)
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// close is for an arena that nobody has used.
func (a *arena) close() {
	unmapMemory(a.base, a.size)
	closeKept(a.fd)
}

// probe finds out now whether a /dev/shm, which may be tiny, has room for useful staging.
func (a *arena) probe() error {
	r, err := a.take(softBytes)
	if err != nil {
		return fmt.Errorf("%s, and /dev/shm has no room: %w (a container's is set with --shm-size)", a.reason, err)
	}
	a.put(r)
	return nil
}

// alloc returns a region of at least n bytes with pages. Ports at rest give up theirs first, then those of by, whose thread calls.
func (a *arena) alloc(n uint64, by *Ports) (region, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inUse+n > softBytes {
		for _, s := range a.dead {
			a.empty(s)
		}
		a.reclaim(a.inUse+n-softBytes, by)
	}
	r, err := a.take(n)
	if err != nil {
		a.reclaim(a.size, by)
		if r, err = a.take(n); err != nil && by != nil {
			a.stripDrained(by)
			r, err = a.take(n)
		}
	}
	if err == nil {
		a.count(by)
	}
	return r, err
}

func (a *arena) release(r region) {
	a.mu.Lock()
	a.put(r)
	a.mu.Unlock()
}

// take hands out a block. mu is held, or nobody else has the arena yet.
func (a *arena) take(n uint64) (region, error) {
	order := orderOf(n, unitSize)
	if order > a.blocks.top {
		return region{}, fmt.Errorf("%d KiB of staging: more than the arena of %d MiB (HCCL_SHM_ARENA)", n>>10, a.size>>20)
	}
	unit := a.blocks.alloc(order)
	if unit < 0 {
		return region{}, fmt.Errorf("%d KiB of staging: the arena of %d MiB is in use (HCCL_SHM_ARENA is its size)", n>>10, a.size>>20)
	}
	r := region{off: uint64(unit) * unitSize, len: unitSize << order, order: order}
	if err := a.page(r); err != nil {
		a.blocks.release(unit, order)
		return region{}, err
	}
	a.mark(a.used, r, true)
	a.inUse += r.len
	return r, nil
}

// page gives the units of r that have none their pages, a run at a time. Units that had some are idle no more; after an error
// what was paged stays so, idle.
func (a *arena) page(r region) error {
	end := (r.off + r.len) / unitSize
	for u := r.off / unitSize; u < end; {
		if bit(a.paged, u) {
			u++
			continue
		}
		run := u
		for u < end && !bit(a.paged, u) {
			u++
		}
		if err := a.pageRun(run, u); err != nil {
			return err
		}
	}
	a.idle -= r.len // all of it is idle at this point: what had pages before, and what pageRun added
	return nil
}

func (a *arena) pageRun(from, to uint64) error {
	off, n := from*unitSize, (to-from)*unitSize
	if err := commit(a.fd, off, n); err != nil {
		return err
	}
	advise(a.base+uintptr(off), n, unix.MADV_POPULATE_WRITE) // one call now instead of a fault per page later
	a.mark(a.paged, region{off: off, len: n}, true)
	a.idle += n
	return nil
}

// put takes a block back; what is idle above the mark returns to the system, from the top. mu is held.
func (a *arena) put(r region) {
	a.blocks.release(int(r.off/unitSize), r.order)
	a.mark(a.used, r, false)
	a.inUse -= r.len
	a.idle += r.len
	if a.idle > idleMost {
		a.trim()
	}
}

func (a *arena) trim() {
	for u := a.size / unitSize; u > 0 && a.idle > idleLeast; {
		end := u
		for u > 0 && bit(a.paged, u-1) && !bit(a.used, u-1) && a.idle-(end-u)*unitSize > idleLeast {
			u--
		}
		if u == end {
			u--
			continue
		}
		r := region{off: u * unitSize, len: (end - u) * unitSize}
		if giveBack(a.fd, r.off, r.len) != nil {
			return // a file system without holes: the pages stay
		}
		a.mark(a.paged, r, false)
		a.idle -= r.len
	}
}

func (a *arena) mark(set []uint64, r region, on bool) {
	for u := r.off / unitSize; u < (r.off+r.len)/unitSize; u++ {
		if on {
			set[u/64] |= 1 << (u % 64)
		} else {
			set[u/64] &^= 1 << (u % 64)
		}
	}
}

func bit(set []uint64, u uint64) bool { return set[u/64]>>(u%64)&1 != 0 }
