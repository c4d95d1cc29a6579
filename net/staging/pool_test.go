package staging

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestClassesHoldWhatTheyAreFor(t *testing.T) {
	for _, step := range []uint64{2, 4, 8} {
		c := newClasses(step)
		for b := range mostBits + 1 {
			for _, n := range []uint64{1<<b - 1, 1 << b, 1<<b + 1} {
				if n > c.largest() {
					continue
				}
				k := c.of(n)
				if size := c.sizes[k]; n > size || k > 0 && n <= c.sizes[k-1] {
					t.Errorf("step %d: %d bytes are in the class of %d", step, n, size)
				}
			}
		}
	}
}

// take gets buffers of a size until there is no more without force.
func take(p *Pool, n uint64) (held []*Buf) {
	for b := p.Get(n, false); b != nil; b = p.Get(n, false) {
		held = append(held, b)
	}
	return held
}

func putAll(held []*Buf) {
	for _, b := range held {
		b.Put()
	}
}

func TestAtTheCapNothingFails(t *testing.T) {
	p := &Pool{opts: Options{Most: 16 << 20}}
	held := take(p, 128<<10)
	if len(held) != 128 {
		t.Errorf("%d buffers of 128 KiB in 16 MiB, want 128", len(held))
	}
	own := p.Get(100, true)
	if own == nil || len(own.Bytes()) < 100 {
		t.Fatal("nothing for who cannot wait")
	}
	if s := p.Stats(); s.Plain != 1 || s.PlainBytes < 100 || s.Bytes != 16<<20 {
		t.Errorf("at the cap: %+v", s)
	}
	own.Put()
	putAll(held)
	if s := p.Stats(); s.Out != 0 || s.PlainBytes != 0 {
		t.Errorf("after all was put: %+v", s)
	}
}

func TestWhatOneClassDoesNotUseGoesToAnother(t *testing.T) {
	p := &Pool{opts: Options{Most: 16 << 20}}
	held := take(p, 4<<10)
	if n := len(held); n != 4096 {
		t.Errorf("%d pages in 16 MiB", n)
	}
	held[0].Put() // one is free, its chunk is not
	if p.Get(4<<20, false) != nil {
		t.Error("a chunk in use was cut anew")
	}
	if held[0] = p.Get(4<<10, false); held[0] == nil {
		t.Error("the free page was lost")
	}
	putAll(held)
	if n := len(take(p, 4<<20)); n != 4 {
		t.Errorf("%d buffers of 4 MiB when all pages are free, want 4", n)
	}
}

func TestMoreThanAClassHolds(t *testing.T) {
	var p Pool
	b := p.Get(5<<20, false)
	b.Bytes()[5<<20-1] = 1
	b.Put()
	if s := p.Stats(); s.Bytes != 0 || s.Plain != 1 {
		t.Errorf("%+v", s)
	}
}

func TestIdleMemoryGoesBack(t *testing.T) {
	p := &Pool{opts: Options{Initial: 8 << 20, Most: 64 << 20}}
	held := take(p, 1<<20)
	top := held[len(held)-1].Bytes()
	kept := held[:9] // of the first three chunks
	putAll(held[9:])
	p.look() // remembers
	if s := p.Stats(); s.Bytes != 64<<20 {
		t.Errorf("after one look: %v", s)
	}
	p.look()
	if s := p.Stats(); s.Bytes != 12<<20 {
		t.Errorf("after two looks: %v, want what is in use", s)
	}
	if err := mincore(top[:4096], make([]byte, 1)); !errors.Is(err, unix.ENOMEM) {
		t.Errorf("memory that went back is still mapped: %v", err)
	}
	putAll(kept)
	p.look()
	p.look()
	if s := p.Stats(); s.Bytes != 8<<20 || p.timer != nil {
		t.Errorf("%v with a timer %v, want the initial size and none", s, p.timer)
	}
	putAll(take(p, 64<<10))
	if s := p.Stats(); s.Bytes != 64<<20 || p.timer == nil {
		t.Errorf("grown again: %v", s)
	}
	p.timer.Stop()
}

func TestTheLastUserTakesTheMemoryAlong(t *testing.T) {
	p := &Pool{}
	p.Join()
	p.Join()
	putAll([]*Buf{p.Get(1, false), p.Get(64<<10, false), p.Get(1<<20, false), p.Get(2<<20, false)})
	p.Leave()
	if s := p.Stats(); s.Bytes != 16<<20 {
		t.Errorf("while there is a user: %v", s)
	}
	p.Leave()
	if s := p.Stats(); s.Bytes != idleBytes {
		t.Errorf("afterwards: %v", s)
	}
}

func TestOneSliceForSeveralReaders(t *testing.T) {
	var p Pool
	b := p.Get(10, false)
	b.Share(2)
	b.Put()
	b.Put()
	if p.Stats().Out != 1 {
		t.Error("it is free while a reader has it")
	}
	b.Put()
	if p.Stats().Out != 0 || p.Get(10, false) != b {
		t.Error("what was used last is not used next")
	}
}

// A buffer that the kernel may still read gets other pages, locked or not, before somebody writes to it again.
func TestForsakenBuffersGetOtherPages(t *testing.T) {
	for _, o := range []Options{{}, {NoLock: true}} {
		p := &Pool{opts: o}
		for _, n := range []uint64{4 << 10, 128 << 10} {
			b := p.Get(n, false)
			for k := range b.Bytes() {
				b.Bytes()[k] = 1
			}
			b.Share(1)
			b.Forsake()
			b.Put()
			if b.Bytes()[0] != 1 {
				t.Error("an owner lost its bytes")
			}
			b.Put()
			if again := p.Get(n, false); again != b || bytes.ContainsFunc(again.Bytes(), func(r rune) bool { return r != 0 }) {
				t.Errorf("%d bytes, locked %v: the buffer was lost, or has the pages that it had", n, !o.NoLock)
			}
			b.Put()
		}
	}
}

func TestGetAndPutAllocateNothing(t *testing.T) {
	var p Pool
	for _, n := range []uint64{1, 64 << 10, 4 << 20} {
		if a := testing.AllocsPerRun(100, func() { p.Get(n, false).Put() }); a != 0 {
			t.Errorf("%v allocations for %d bytes, want 0", a, n)
		}
	}
}
