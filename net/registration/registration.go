// Package registration keeps memory registered with a network card or a device that reads and writes it by itself, so that a buffer
// that is used again is not registered again, and notices when the program frees, moves or drops the memory behind a registration.
//
//	Get(p, n) ── current? ── found ──────────────────────────────> Region, until Put
//	                │           └ not found ── watch, Register ──>
//	                └ no, and not soon ────── Register ──────────> Region, which Put gives back at once
//
//	munmap, mremap, madvise ──> kernel ──> reader.c ──> changes ──> Cache.lose: found no more, given back when unused
//	 of any thread, which waits until the reader has read
//
// A registration is a promise about physical pages. The card goes on using those that an address had when it was registered, whatever
// the program maps there later. So a region is served only while nothing has become of its memory, which the kernel tells by
// userfaultfd (kernel.go): a change is announced before the thread that makes it goes on, and Get asks, before it believes what it
// finds, whether there are changes that it has not heard of. Two regions that can be found never overlap: a range that overlaps some
// takes their place together with them. Those that are in use meanwhile are retired: found no more, given back by their last Put.
//
// What is not noticed: a file that is truncated or punched through another descriptor, and guard pages of MADV_GUARD_INSTALL. Memory
// that cannot be watched (files on disks, System V segments, what another userfaultfd has) is registered for one use and never kept.
//
// What it is not: it knows no card and moves no byte. The transport that drives a card has a Cache for it; core has one for
// ncclCommRegister.
package registration

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/plural"
)

// Key is what a card calls registered memory: here, and in requests of other ranks' cards.
type Key struct{ Local, Remote uint64 }

// Registrar is what drives a card. Its methods may be called from several threads at once, and for ranges that overlap.
type Registrar interface {
	Register(p device.Ptr, n uint64) (Key, error)
	Deregister(Key) error
}

// Region is registered memory in whole pages. Between Get and Put it stays registered, whatever becomes of the memory.
type Region struct {
	Key
	span
	cache *Cache
	ready chan struct{} // closed when the card has answered; nil: nobody can wait for that
	err   error         // of the card; read after ready

	// Guarded by the watch's mu.
	state        state
	users        int
	pending      bool    // the card has not answered
	gone         []span  // what is not watched any more, because it was unmapped or moved
	holds        []*Hold // who wants to hear when the memory is gone
	older, newer *Region // of the idle ones
}

type state uint8

const (
	live    state = iota // in the index; without users it is idle
	retired              // in use and found no more
	loose                // for one use, and not watched
)

// Range is what the region covers.
func (r *Region) Range() (p device.Ptr, n uint64) { return device.Ptr(r.start), r.size() }

// Hold is a registration that lasts: who holds it is told when the memory is gone.
type Hold struct {
	region *Region
	span             // what was asked for, in whole pages
	told   func(How) // nil: was told
	at     int       // in region.holds
}

// How is what became of memory.
type How uint8

// What the kernel tells, in the past tense of its calls. Unknown: it told more than was kept.
const (
	Unknown How = iota
	Unmapped
	Moved
	Dropped
)

var hows = [...]string{"changed", "unmapped (munmap, free)", "moved (mremap, realloc)", "dropped (madvise)"}

func (h How) String() string { return hows[h] }

// Stats is what a cache has and has done.
type Stats struct {
	Regions      int    // registered now
	Bytes        uint64 // in them, counted for each region
	Hits, Misses uint64
	Unkept       uint64 // misses that were registered for one use
	Lost         uint64 // regions whose memory was gone
}

func (s Stats) String() string {
	text := fmt.Sprintf("%s of %d KiB, found by %d of %s", plural.Of(s.Regions, "region"), s.Bytes>>10, s.Hits,
		plural.Of(int(s.Hits+s.Misses), "request"))
	if s.Lost > 0 {
		text += fmt.Sprintf(", %d were lost with their memory", s.Lost)
	}
	return text
}

var page = uint64(unix.Getpagesize())

// span is the addresses [start, end).
type span struct{ start, end uint64 }

var everything = span{0, ^uint64(0)}

func (s span) size() uint64           { return s.end - s.start }
func (s span) overlaps(o span) bool   { return s.start < o.end && o.start < s.end }
func (s span) covers(o span) bool     { return s.start <= o.start && o.end <= s.end }
func (s span) rounded(to uint64) span { return span{s.start &^ (to - 1), (s.end + to - 1) &^ (to - 1)} }

// with is the smallest span that covers both.
func (s span) with(o span) span { return span{min(s.start, o.start), max(s.end, o.end)} }

// pagesOf is the whole pages of a range.
func pagesOf(p device.Ptr, n uint64) (span, error) {
	s := span{uint64(p), uint64(p) + n}
	if n == 0 || s.end < s.start || s.end > ^uint64(0)-page {
		return span{}, fmt.Errorf("%d bytes at %#x are no memory", n, p)
	}
	return s.rounded(page), nil
}

// without takes a span out of others.
func without(from []span, s span) (rest []span) {
	for _, f := range from {
		if !f.overlaps(s) {
			rest = append(rest, f)
			continue
		}
		if f.start < s.start {
			rest = append(rest, span{f.start, s.start})
		}
		if s.end < f.end {
			rest = append(rest, span{s.end, f.end})
		}
	}
	return rest
}
