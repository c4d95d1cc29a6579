package shm

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { roles["keeper"] = keeperRole }

// book is a Keeper that keeps a list.
type book struct {
	mu   sync.Mutex
	open map[int]bool
}

func (b *book) Opened(fd int) { b.set(fd, true) }
func (b *book) Closed(fd int) { b.set(fd, false) }

func (b *book) set(fd int, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[fd] == open {
		fmt.Println("error descriptor", fd, "told twice:", open)
	}
	b.open[fd] = open
}

// keeperRole connects to a process and makes a segment, then compares its list with the kernel's.
func keeperRole(in *bufio.Scanner, args []string) error {
	b := &book{open: map[int]bool{}}
	Descriptors = b
	l, err := Open()
	if err != nil {
		return err
	}
	p, err := l.Connect(parseKey(args[0]), parseKey(args[1]), soon(), nil)
	if err != nil {
		return err
	}
	s, err := Create(2, 1)
	if err != nil {
		return err
	}
	if err := b.compare(5); err != nil { // arena, socket, eventfd, pidfd, segment
		return err
	}
	s.CloseFD()
	p.Release()
	fmt.Println("compared")
	return b.compare(3)
}

func (b *book) compare(want int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	told := 0
	for _, e := range list {
		fd, _ := strconv.Atoi(e.Name())
		if b.open[fd] {
			told++
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				return fmt.Errorf("descriptor %d is not closed by exec", fd)
			}
			continue
		}
		link, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if strings.Contains(link, "memfd:hccl") || strings.HasPrefix(link, "socket:") || strings.Contains(link, "pidfd") {
			return fmt.Errorf("descriptor %d, %s, was not told", fd, link)
		}
	}
	if told != want {
		return fmt.Errorf("%d descriptors told, want %d", told, want)
	}
	return nil
}

// A forked child can close all that is open: every kept descriptor is told, once, and all are closed by exec.
func TestKeeper(t *testing.T) {
	s := serve(t, "alone")
	c := start(t, "keeper", s.name.hex(), s.key.hex())
	if got := c.line(); got != "compared" {
		t.Error(got)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// 64 ranks of a host: every pair has a port, and what nobody touches costs no page.
func TestManyRanks(t *testing.T) {
	const n = 64
	segs := host(t, n, 4)
	defer leave(segs)
	fd, err := Create(n, 4)
	if err != nil {
		t.Fatal(err)
	}
	if got, most := pagesOf(t, fd.FD()), uint64(n*(boardSize+1024)); got > most {
		t.Errorf("an unused segment of %d ranks takes %d KiB, want at most %d", n, got>>10, most>>10)
	}
	fd.Close()
	for w := range n {
		r := (w + 17) % n
		o := outOf(t, segs[w].Ports(), 0, w%4, r)
		in := inOf(t, segs[r].Ports(), 0, w%4, w)
		for range 20 {
			if !send(t, o, 64, uint64(w)) || !receive(t, in, 64, uint64(w)) {
				t.Fatal("rank", w)
			}
		}
	}
}
