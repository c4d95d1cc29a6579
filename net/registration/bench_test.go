package registration

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

// counting is a card without memory: each registration has a key of its own.
type counting struct {
	made, gone atomic.Uint64
}

func (c *counting) Register(device.Ptr, uint64) (Key, error) { return Key{Local: c.made.Add(1)}, nil }
func (c *counting) Deregister(Key) error                     { c.gone.Add(1); return nil }

func (c *counting) there() uint64 { return c.made.Load() - c.gone.Load() }

// needNotice skips where the kernel does not tell what becomes of memory.
func needNotice(t testing.TB) {
	t.Helper()
	if !process.current() {
		t.Skip("no userfaultfd here: nothing is kept")
	}
}

// A request that finds its region, with one region there and with as many as are kept by default.
func BenchmarkFound(b *testing.B) {
	needNotice(b)
	for _, n := range []uint64{1, DefaultEntries} {
		b.Run(map[bool]string{true: "one", false: "all"}[n == 1], func(b *testing.B) {
			c := New(&counting{}, DefaultEntries)
			p := mapped(b, 2*n*page)
			for k := range n { // every second page, so that they are as many mappings
				put(b, c, p+device.Ptr(2*k*page), page)
			}
			b.ReportAllocs()
			k := uint64(0)
			for b.Loop() {
				r, err := c.Get(p+device.Ptr(2*(k%n)*page), 100)
				if err != nil {
					b.Fatal(err)
				}
				r.Put()
				k += 4099
			}
			b.StopTimer()
			if s := c.Stats(); s.Misses != n {
				b.Fatal(s)
			}
		})
	}
}

// A request that finds none, with a card that costs nothing: watching, entering, and giving up the oldest of 64.
func BenchmarkNotFound(b *testing.B) {
	needNotice(b)
	c := New(&counting{}, 64)
	const n = 256
	p := mapped(b, 2*n*page)
	k := uint64(0)
	for b.Loop() {
		put(b, c, p+device.Ptr(2*(k%n)*page), page)
		k++
	}
}

// What the call that frees 64 KiB costs the program, as ever and where the memory was registered.
func BenchmarkUnmap(b *testing.B) {
	needNotice(b)
	for _, registered := range []bool{false, true} {
		b.Run(map[bool]string{true: "registered", false: "plain"}[registered], func(b *testing.B) {
			c := New(&counting{}, DefaultEntries)
			var spent time.Duration
			for b.Loop() {
				mem, err := unix.Mmap(-1, 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
				if err != nil {
					b.Fatal(err)
				}
				if registered {
					put(b, c, device.BytesPtr(mem), uint64(len(mem)))
				}
				begin := time.Now()
				if err := unix.Munmap(mem); err != nil {
					b.Fatal(err)
				}
				spent += time.Since(begin)
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "ns/munmap")
		})
	}
}

// Watching memory and giving that up, by size: the kernel walks through its pages then.
func BenchmarkWatch(b *testing.B) {
	needNotice(b)
	for _, mib := range []uint64{1, 64, 1024} {
		b.Run(fmt.Sprintf("%dMiB", mib), func(b *testing.B) {
			c := New(&counting{}, DefaultEntries)
			p := mapped(b, mib<<20)
			for b.Loop() {
				put(b, c, p, mib<<20)
				c.flush()
			}
		})
	}
}

// mapped is memory until the end of the test.
func mapped(t testing.TB, n uint64) device.Ptr {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return device.BytesPtr(mem)
}

// put registers memory that stays in the cache.
func put(t testing.TB, c *Cache, p device.Ptr, n uint64) Key {
	t.Helper()
	r, err := c.Get(p, n)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Put()
	return r.Key
}
