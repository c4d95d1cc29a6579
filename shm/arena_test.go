package shm

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

func pagesOf(t *testing.T, fd int) uint64 {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	return uint64(st.Blocks) * 512
}

func testArena(t *testing.T, limit uint64) *arena {
	a, err := newArena(limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

// Regions keep what is written to them, whatever comes and goes around them, and the accounts agree with the kernel's.
func TestArenaStress(t *testing.T) {
	a := testArena(t, 64<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	live := map[uint64]region{}
	for step := range 20000 {
		if rng.IntN(2) == 0 || len(live) == 0 {
			r, err := a.alloc(1+rng.Uint64N(1<<rng.IntN(22)), nil)
			if err != nil {
				continue
			}
			word64(a.base + uintptr(r.off)).Store(r.off)
			word64(a.base + uintptr(r.off+r.len-8)).Store(^r.off)
			live[r.off] = r
			continue
		}
		for off, r := range live {
			if word64(a.base+uintptr(off)).Load() != off || word64(a.base+uintptr(off+r.len-8)).Load() != ^off {
				t.Fatalf("step %d: region at %d was overwritten", step, off)
			}
			a.release(r)
			delete(live, off)
			break
		}
		if a.idle > idleMost {
			t.Fatalf("step %d: %d bytes idle", step, a.idle)
		}
	}
	if got, want := pagesOf(t, a.fd), a.inUse+a.idle; got != want {
		t.Errorf("the kernel counts %d bytes, the arena %d", got, want)
	}
	for _, r := range live {
		a.release(r)
	}
	if a.inUse != bellBytes || pagesOf(t, a.fd) > idleMost+bellBytes {
		t.Errorf("%d bytes in use, %d with pages after all was freed", a.inUse, pagesOf(t, a.fd))
	}
}

func TestArenaFull(t *testing.T) {
	a := testArena(t, 1<<20)
	if _, err := a.alloc(2<<20, nil); err == nil {
		t.Error("more than the arena was handed out")
	}
	r, err := a.alloc(512<<10, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.alloc(512<<10, nil); err == nil {
		t.Error("the bells' half was handed out")
	}
	a.release(r)
	if _, err := a.alloc(512<<10, nil); err != nil {
		t.Error(err)
	}
}

// A host without memfd_create gets an unnamed file; a receiver takes it only where it had to make one itself.
func TestFallbackToFile(t *testing.T) {
	was := memfdCreate
	memfdCreate = func(string, int) (int, error) { return -1, unix.EPERM }
	defer func() { memfdCreate = was }()
	a := testArena(t, 16<<20)
	if a.reason == "" {
		t.Fatal("no reason given")
	}
	if _, err := checkMemory(a.fd, true); err != nil {
		t.Error(err)
	}
	if _, err := checkMemory(a.fd, false); err != errUnsealed {
		t.Errorf("unsealed memory where memfds work: %v", err)
	}
}

// Memory that a peer could shrink, or that is not what was agreed, is refused.
func TestCheckMemory(t *testing.T) {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := checkMemory(fd, false); err != errUnsealed {
		t.Errorf("unsealed: %v", err)
	}
	l := newLayout(2, 1)
	for _, size := range []uint64{0, l.total - 1, l.total} { // the last has no magic
		fd, err := newMemfd(size)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Map(fd, 2, 1); err == nil {
			t.Errorf("a segment of %d bytes of zeros was accepted", size)
		}
	}
}
