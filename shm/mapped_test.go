package shm

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Ranks of one process see a segment at one place, which stays mapped until the last of them closes it.
func TestSegmentIsMappedOnce(t *testing.T) {
	first, err := Create(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.FcntlInt(uintptr(first.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Map(fd, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Create(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if first.base != second.base || other.base == first.base {
		t.Errorf("one segment is at %#x and %#x, another at %#x", first.base, second.base, other.base)
	}
	first.Close()
	if word64(second.base+headMagic).Load() != segmentMagic {
		t.Error("the segment went with the first that closed it")
	}
	second.Close()
	other.Close()
	if len(mapped.by) != 0 || len(mapped.atBase) != 0 {
		t.Errorf("%d segments stay mapped", len(mapped.by))
	}
}
