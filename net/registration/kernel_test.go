package registration

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

const (
	someMemory = 8 << 20 // whole huge pages
	at         = device.Ptr(0x5a0000000000)
)

// memory is a kind of memory, mapped at a fixed address so that a test can have it at the same place again.
type memory struct {
	name string
	kept bool // it can be watched
	make func(t *testing.T, at device.Ptr) error
}

var memories = []memory{
	{"anonymous", true, func(_ *testing.T, at device.Ptr) error {
		return mmap(at, someMemory, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1)
	}},
	{"huge pages where possible", true, func(_ *testing.T, at device.Ptr) error {
		if err := mmap(at, someMemory, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1); err != nil {
			return err
		}
		return madvise(at, someMemory, unix.MADV_HUGEPAGE)
	}},
	{"hugetlb", true, func(_ *testing.T, at device.Ptr) error {
		return mmap(at, someMemory, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_HUGETLB, -1)
	}},
	{"shared memfd", true, func(t *testing.T, at device.Ptr) error {
		return mmap(at, someMemory, unix.MAP_SHARED, memfd(t))
	}},
	{"private memfd", true, func(t *testing.T, at device.Ptr) error {
		return mmap(at, someMemory, unix.MAP_PRIVATE, memfd(t))
	}},
	{"file", false, func(t *testing.T, at device.Ptr) error {
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(someMemory); err != nil {
			t.Fatal(err)
		}
		var fs unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &fs); err == nil && fs.Type == unix.TMPFS_MAGIC {
			t.Skip("the folder for temporary files is memory")
		}
		return mmap(at, someMemory, unix.MAP_SHARED, int(f.Fd()))
	}},
	{"System V segment", false, attach},
	{"what another userfaultfd has", false, func(t *testing.T, at device.Ptr) error {
		if err := mmap(at, someMemory, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1); err != nil {
			return err
		}
		return another(t, span{uint64(at) + someMemory/2, uint64(at) + someMemory/2 + page})
	}},
}

// changes are what a program can do to memory. What it leaves is mapped anew, if it is not there.
var changes = []struct {
	name string
	lost bool // the registration of all of it is no longer right
	do   func(at device.Ptr) error
}{
	{"none", false, func(device.Ptr) error { return nil }},
	{"unmapped", true, func(at device.Ptr) error { return munmap(at, someMemory) }},
	{"unmapped in the middle", true, func(at device.Ptr) error { return munmap(at+2<<20, 2<<20) }},
	{"mapped over", true, func(at device.Ptr) error { return mmap(at, someMemory, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1) }},
	{"not needed", true, func(at device.Ptr) error { return madvise(at+2<<20, 2<<20, unix.MADV_DONTNEED) }},
	{"free", true, func(at device.Ptr) error { return madvise(at+2<<20, 2<<20, unix.MADV_FREE) }},
	{"removed", true, func(at device.Ptr) error { return madvise(at+2<<20, 2<<20, unix.MADV_REMOVE) }},
	{"moved", true, func(at device.Ptr) error {
		return mremap(at, someMemory, someMemory, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, at+4*someMemory)
	}},
	{"moved in the middle", true, func(at device.Ptr) error {
		return mremap(at+2<<20, 2<<20, 2<<20, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, at+4*someMemory)
	}},
	{"moved and left", true, func(at device.Ptr) error {
		return mremap(at, someMemory, someMemory, unix.MREMAP_MAYMOVE|unix.MREMAP_DONTUNMAP, 0)
	}},
	{"grown with a move", true, func(at device.Ptr) error {
		return mremap(at, someMemory, 2*someMemory, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, at+4*someMemory)
	}},
	{"grown in place", false, func(at device.Ptr) error { return mremap(at, someMemory, 2*someMemory, 0, 0) }},
	{"shrunk", true, func(at device.Ptr) error { return mremap(at, someMemory, someMemory/2, 0, 0) }},
	{"protected", false, func(at device.Ptr) error { return mprotect(at, someMemory/2) }},
	{"a neighbour unmapped", false, func(at device.Ptr) error {
		if err := mmap(at+someMemory, someMemory, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1); err != nil {
			return err
		}
		return munmap(at+someMemory, someMemory)
	}},
}

// TestKernel has the running kernel do to each kind of memory what programs do, and looks whether a registration is found again only
// where it is still right.
func TestKernel(t *testing.T) {
	needNotice(t)
	for _, m := range memories {
		for _, ch := range changes {
			t.Run(m.name+"/"+ch.name, func(t *testing.T) { changed(t, m, ch.lost, ch.do) })
		}
	}
}

func changed(t *testing.T, m memory, lost bool, do func(device.Ptr) error) {
	if err := m.make(t, at); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = munmap(at, 8*someMemory) })
	c, card := newCardCache(t)
	var told []How
	h, err := c.Hold(at, someMemory, func(how How) { told = append(told, how) })
	if err != nil {
		t.Fatal(err)
	}
	first := put(t, c, at, someMemory)
	inside := put(t, c, at+2<<20+5, 100)
	if (first == inside) != m.kept {
		t.Fatalf("%v was found inside of %v", inside, first)
	}
	if err := do(at); err != nil {
		t.Skip(err) // such memory does not allow it
	}
	h.Release() // nothing runs beside this test but the watch: a change has been told when the call returned, and acted upon by Get
	if err := remap(); err != nil {
		t.Fatal(err)
	}
	again := put(t, c, at, someMemory)
	if found := again == first; found != (m.kept && !lost) {
		t.Errorf("%v was registered, now it is %v", first, again)
	}
	c.flush()
	if n := card.there(); n != 0 {
		t.Errorf("%d registrations are left with the card", n)
	}
}

// remap fills what is not mapped of the memory.
func remap() error {
	for p := at; p < at+someMemory; p += device.Ptr(1 << 20) {
		if err := mmap(p, 1<<20, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, -1); err != nil && err != unix.EEXIST {
			return err
		}
	}
	return nil
}

func newCardCache(t *testing.T) (*Cache, *counting) {
	t.Helper()
	card := new(counting)
	c := New(card, DefaultEntries)
	t.Cleanup(func() { leaveWatch(c) })
	return c, card
}

// leaveWatch takes a cache of a test out of the process's list.
func leaveWatch(c *Cache) {
	c.flush()
	c.watch.mu.Lock()
	defer c.watch.mu.Unlock()
	c.watch.caches = slices.DeleteFunc(c.watch.caches, func(o *Cache) bool { return o == c })
}

// Who holds a registration hears once of what becomes of its own range, and how.
func TestHolderIsTold(t *testing.T) {
	needNotice(t)
	c, card := newCardCache(t)
	if err := mmap(at, someMemory, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = munmap(at, someMemory) })
	type word struct {
		part int
		how  How
	}
	told := make(chan word, 16)
	var holds []*Hold
	for part := range 4 { // parts overlap by a page
		h, err := c.Hold(at+device.Ptr(part)<<20, 1<<20+page, func(how How) { told <- word{part, how} })
		if err != nil {
			t.Fatal(err)
		}
		holds = append(holds, h)
	}
	for _, step := range []struct {
		do   func() error
		want []word
	}{
		{func() error { return madvise(at+100<<12, 1<<12, unix.MADV_DONTNEED) }, []word{{0, Dropped}}},
		{func() error { return munmap(at+1<<20, 1<<12) }, []word{{1, Unmapped}}}, // 0 has it too, and was told
		{func() error { return munmap(at, 2<<20) }, nil},
		{func() error { return munmap(at+3<<20, 1<<12) }, []word{{2, Unmapped}, {3, Unmapped}}},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		var heard []word
		for range step.want {
			heard = append(heard, <-told)
		}
		slices.SortFunc(heard, func(a, b word) int { return a.part - b.part })
		if !slices.Equal(heard, step.want) {
			t.Errorf("told %v, want %v", heard, step.want)
		}
	}
	put(t, c, at+4<<20, page) // acts upon all that has happened
	if len(told) > 0 {
		t.Errorf("told again: %v", <-told)
	}
	for _, h := range holds {
		h.Release()
	}
	c.flush()
	if n := card.there(); n != 0 {
		t.Errorf("%d registrations are left with the card", n)
	}
}

// Freed memory goes back to the system without another call.
func TestFreedMemoryIsGivenBack(t *testing.T) {
	needNotice(t)
	gone := make(chan Key, 1)
	c := New(&leaving{gone: gone}, DefaultEntries)
	t.Cleanup(func() { leaveWatch(c) })
	if err := mmap(at, someMemory, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1); err != nil {
		t.Fatal(err)
	}
	key := put(t, c, at, someMemory)
	if err := munmap(at, someMemory); err != nil {
		t.Fatal(err)
	}
	if k := <-gone; k != key {
		t.Errorf("%v is given back, %v was registered", k, key)
	}
}

// leaving is a card that says what it is to forget.
type leaving struct {
	counting
	gone chan Key
}

func (l *leaving) Deregister(k Key) error {
	l.gone <- k
	return nil
}

// More changes than are kept until somebody takes them: everything is taken for changed.
func TestMoreChangesThanAreKept(t *testing.T) {
	needNotice(t)
	c, _ := newCardCache(t)
	if err := mmap(at, someMemory, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = munmap(at, someMemory) })
	changed, other := put(t, c, at, page), put(t, c, at+4<<20, page)
	process.mu.Lock() // nobody takes any
	for range mostChanges + 10 {
		if err := madvise(at, page, unix.MADV_DONTNEED); err != nil {
			t.Error(err)
			break
		}
	}
	process.mu.Unlock()
	if again := put(t, c, at, page); again == changed {
		t.Errorf("%v is found again", changed)
	}
	if again := put(t, c, at+4<<20, page); again == other {
		t.Errorf("%v is found again, although nothing tells that its memory is what it was", other)
	}
}
