package host

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

// FDs is told of the descriptors that are kept, so that a forked child can close them. It is set before the first Alloc or nil.
var FDs interface {
	Opened(fd int)
	Closed(fd int)
}

// maxShared bounds the descriptors that allocations hold in the host's process. Further allocations are private memory, which
// peers reach by copying.
const maxShared = 256

// allocation is memory of Alloc.
type allocation struct {
	base device.Ptr
	size uint64 // as asked for
	id   uint64
	fd   int // of its memfd; -1: private memory
}

// end is the address behind the allocation's last page.
func (a *allocation) end() device.Ptr { return a.base + device.Ptr(pages(a.size)) }

// allocations is all that was allocated and not yet freed.
var allocations struct {
	mu     sync.RWMutex
	byBase []allocation // mu; ascending
	lastID uint64       // mu
	shared int          // mu; those with a descriptor
}

// search returns the position of the first allocation that ends above p: the one that holds p, if any does. The caller holds mu.
func search(p device.Ptr) int {
	i, _ := slices.BinarySearchFunc(allocations.byBase, p, func(a allocation, p device.Ptr) int {
		if a.end() <= p {
			return -1
		}
		return 1
	})
	return i
}

// PlaceOf tells what is known of p: the allocation that it lies in, or else only that it is host memory of the caller's own.
func PlaceOf(p device.Ptr) device.Place {
	allocations.mu.RLock()
	defer allocations.mu.RUnlock()
	if i := search(p); i < len(allocations.byBase) && allocations.byBase[i].base <= p {
		return place(&allocations.byBase[i])
	}
	return device.Place{Kind: device.Host, Dev: -1, Base: p}
}

func place(a *allocation) device.Place {
	p := device.Place{Kind: device.Host, Dev: -1, Base: a.base, Size: a.size, ID: a.id}
	if a.fd >= 0 {
		p.Share = device.ShareMemfd
	}
	return p
}

// Descriptor is the memfd of the allocation that starts at p, for another process to map; it stays the allocation's own. The size
// of the file is that of the allocation in whole pages, and sealed.
func Descriptor(p device.Ptr) (fd int, ok bool) {
	allocations.mu.RLock()
	defer allocations.mu.RUnlock()
	i := search(p)
	if i == len(allocations.byBase) || allocations.byBase[i].base != p || allocations.byBase[i].fd < 0 {
		return -1, false
	}
	return allocations.byBase[i].fd, true
}

// Alloc returns zeroed memory of n bytes, aligned to a page, that other processes can map. Where no memfd is to be had (a
// seccomp filter, no descriptors left) it is private memory, and Share says so. Like all shared mappings it is shared with a
// forked child, not copied.
func Alloc(n uint64) (device.Place, error) {
	if n == 0 || n > maxSize {
		return device.Place{}, fmt.Errorf("host memory: cannot allocate %d bytes", n)
	}
	allocations.mu.Lock()
	defer allocations.mu.Unlock()
	a := allocation{size: n, fd: -1}
	if allocations.shared < maxShared {
		a.base, a.fd = mapShared(pages(n))
	}
	if a.fd < 0 {
		base, err := mapPages(pages(n), unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1)
		if err != nil {
			return device.Place{}, fmt.Errorf("host memory: cannot map %d bytes: %w", n, err)
		}
		a.base = base
	}
	enter(&a)
	return place(&a), nil
}

// enter adds a new allocation to the table. The caller holds mu.
func enter(a *allocation) {
	allocations.lastID++
	a.id = allocations.lastID
	allocations.byBase = slices.Insert(allocations.byBase, search(a.base), *a)
	if a.fd < 0 {
		return
	}
	allocations.shared++
	if FDs != nil {
		FDs.Opened(a.fd)
	}
}

// Free gives back memory of Alloc. p is the address that Alloc returned; no operation may still use the memory.
func Free(p device.Ptr) error {
	allocations.mu.Lock()
	defer allocations.mu.Unlock()
	i := search(p)
	if i == len(allocations.byBase) || allocations.byBase[i].base != p {
		return fmt.Errorf("host memory: %#x was not allocated here, or has been freed", uintptr(p))
	}
	a := allocations.byBase[i]
	allocations.byBase = slices.Delete(allocations.byBase, i, i+1)
	unmap(a.base, pages(a.size))
	if a.fd >= 0 {
		allocations.shared--
		closeShared(a.fd)
	}
	return nil
}

func closeShared(fd int) {
	if FDs != nil {
		FDs.Closed(fd)
	}
	unix.Close(fd) // not retried: Linux has closed it whatever it answers
}
