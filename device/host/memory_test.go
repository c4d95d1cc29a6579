package host

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

// openFDs counts this process's descriptors.
func openFDs(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func alloc(t *testing.T, n uint64) device.Place {
	t.Helper()
	p, err := Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func free(t *testing.T, p device.Ptr) {
	t.Helper()
	if err := Free(p); err != nil {
		t.Fatal(err)
	}
}

func TestAlloc(t *testing.T) {
	before := openFDs(t)
	for _, n := range []uint64{1, 4095, 4096, 4097, 3 << 20} {
		p := alloc(t, n)
		if p.Kind != device.Host || p.Dev != -1 || p.Size != n || p.Share != device.ShareMemfd || uint64(p.Base)%4096 != 0 {
			t.Fatalf("allocation of %d bytes is %+v", n, p)
		}
		b := device.Bytes(p.Base, n)
		if b[0] != 0 || b[n-1] != 0 {
			t.Fatal("new memory is not zero")
		}
		b[0], b[n-1] = 1, 2
		for _, at := range []device.Ptr{p.Base, p.Base + device.Ptr(n-1)} {
			if got := PlaceOf(at); got != p {
				t.Errorf("place of %#x is %+v, want %+v", at, got, p)
			}
		}
		fd, ok := Descriptor(p.Base)
		if !ok {
			t.Fatal("no descriptor")
		}
		seesWrites(t, fd, b)
		free(t, p.Base)
		if got := PlaceOf(p.Base); got.ID != 0 || ValidRange(p.Base, n) {
			t.Errorf("freed memory is still known: %+v", got)
		}
	}
	if after := openFDs(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// seesWrites maps fd as a peer does and compares; the file keeps its size.
func seesWrites(t *testing.T, fd int, b []byte) {
	t.Helper()
	m, err := unix.Mmap(fd, 0, len(b), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(m)
	if m[0] != b[0] || m[len(m)-1] != b[len(b)-1] {
		t.Error("another mapping sees other bytes")
	}
	if err := unix.Ftruncate(fd, 0); !errors.Is(err, unix.EPERM) {
		t.Errorf("truncating the memory's file: %v, want %v", err, unix.EPERM)
	}
}

func TestFreeOfForeignMemory(t *testing.T) {
	p := alloc(t, 10000)
	for _, bad := range []device.Ptr{0, 1, p.Base + 4096, p.Base - 4096, device.BytesPtr([]byte{1})} {
		if err := Free(bad); err == nil {
			t.Errorf("Free(%#x) worked", bad)
		}
	}
	free(t, p.Base)
	if err := Free(p.Base); err == nil {
		t.Error("freeing twice worked")
	}
	for _, n := range []uint64{0, 1 << 60, ^uint64(0)} {
		if _, err := Alloc(n); err == nil {
			t.Errorf("Alloc(%d) worked", n)
		}
	}
}

func TestPlaceOfUserMemory(t *testing.T) {
	var x [8]byte
	p := device.Ptr(unsafe.Pointer(&x))
	if got, want := PlaceOf(p), (device.Place{Kind: device.Host, Dev: -1, Base: p}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// More allocations than descriptors may be held: the rest is private memory and just as good for its owner.
func TestManyAllocations(t *testing.T) {
	var kept []device.Place
	ids, private := map[uint64]bool{}, 0
	for range maxShared + 10 {
		p := alloc(t, 100)
		device.Bytes(p.Base, 100)[99] = 7
		kept = append(kept, p)
		ids[p.ID] = true
		if p.Share == 0 {
			private++
			if _, ok := Descriptor(p.Base); ok {
				t.Error("private memory has a descriptor")
			}
		}
	}
	for i := range kept { // in an order of its own
		k := kept[(i*5)%len(kept)]
		if got := PlaceOf(k.Base + 50); got != k {
			t.Fatalf("place is %+v, want %+v", got, k)
		}
		free(t, k.Base)
	}
	if len(ids) != len(kept) || private != 10 {
		t.Errorf("%d numbers for %d allocations, %d private", len(ids), len(kept), private)
	}
}

func TestWithoutMemfd(t *testing.T) {
	defer func(old func(string, int) (int, error)) { memfdCreate = old }(memfdCreate)
	memfdCreate = func(string, int) (int, error) { return -1, unix.EPERM }
	p := alloc(t, 5000)
	if p.Share != 0 {
		t.Errorf("share is %v without a memfd", p.Share)
	}
	device.Bytes(p.Base, 5000)[4999] = 1
	free(t, p.Base)
}

type fdLog map[int]int

func (l fdLog) Opened(fd int) { l[fd]++ }
func (l fdLog) Closed(fd int) { l[fd]-- }

func TestDescriptorsAreReported(t *testing.T) {
	log := fdLog{}
	FDs = log
	defer func() { FDs = nil }()
	p := alloc(t, 1)
	fd, _ := Descriptor(p.Base)
	if log[fd] != 1 {
		t.Errorf("descriptor %d was not reported: %v", fd, log)
	}
	free(t, p.Base)
	if log[fd] != 0 {
		t.Errorf("closing %d was not reported: %v", fd, log)
	}
}

func TestValidRange(t *testing.T) {
	page := uint64(os.Getpagesize())
	base, err := mapPages(5000*page, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1)
	if err != nil {
		t.Fatal(err)
	}
	unmap(base+device.Ptr(3000*page), page) // a hole
	defer unmap(base, 5000*page)
	at := func(pages uint64) device.Ptr { return base + device.Ptr(pages*page) }
	var local int64
	for _, c := range []struct {
		p    device.Ptr
		n    uint64
		want bool
	}{
		{base, 1, true}, {base, 3000 * page, true}, {base, 3000*page + 1, false}, {base + 5, 4000 * page, false},
		{at(3000) - 1, 1, true}, {at(3000) - 1, 2, false}, {at(3000), 1, false}, {at(3001), 1999 * page, true},
		{0, 8, false}, {8, 8, false}, {base, 0, false}, {base, ^uint64(0), false}, {^device.Ptr(0) - 7, 8, false}, {1 << 60, 8, false},
		{device.Ptr(unsafe.Pointer(&local)), 8, true},
	} {
		if got := ValidRange(c.p, c.n); got != c.want {
			t.Errorf("ValidRange(base+%d pages, %d) is %v", int64(c.p-base)/int64(page), c.n, got)
		}
	}
}

func TestStream(t *testing.T) {
	var dev device.Processor = Processor{}
	for _, handle := range []uintptr{0, legacyStream, perThreadStream} {
		s, err := dev.Stream(handle)
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Gate()
		if err != nil || !g.Ready() || g.Lane() != 0 {
			t.Errorf("stream %d: gate %v, %v", handle, g, err)
		}
		g.Release()
	}
	if _, err := dev.Stream(0x7f0000001000); err == nil {
		t.Error("an unknown stream was accepted")
	}
}

func BenchmarkAllocFree(b *testing.B) {
	for b.Loop() {
		p, err := Alloc(70000)
		if err != nil {
			b.Fatal(err)
		}
		if err := Free(p.Base); err != nil {
			b.Fatal(err)
		}
	}
}
