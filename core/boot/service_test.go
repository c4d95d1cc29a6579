package boot

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func testService(t *testing.T) *Service {
	t.Helper()
	svc, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

func TestAcceptFindsEarlyConnections(t *testing.T) {
	svc := testService(t)
	key, secret := svc.NewKey(), []byte("secret")
	box := svc.Expect(key, secret)
	defer box.Close()
	type end struct{ purpose, from int }
	ends := []end{{1, 0}, {2, 0}, {1, 5}, {1, 5}}
	for i, e := range ends {
		c, err := Dial(svc.Addrs(), key, secret, e.from, uint8(e.purpose), within(5))
		if err != nil {
			t.Fatal(err)
		}
		defer Close(c.FD)
		unix.Write(c.FD, []byte{byte(i)})
	}
	for _, i := range []int{3, 1, 0, 2} { // two of one kind come in order
		want := i
		if i >= 2 {
			want = 5 - i
		}
		c, err := box.Accept(uint8(ends[i].purpose), ends[i].from, within(5))
		if err != nil {
			t.Fatal(err)
		}
		fd := c.FD
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		pollFor(fds, 5*time.Second)
		var b [2]byte
		if n, err := unix.Read(fd, b[:]); n != 1 || int(b[0]) != want {
			t.Errorf("connection %d brought %d, %v", want, b[0], err)
		}
		flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		cloexec, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		nodelay, _ := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
		if flags&unix.O_NONBLOCK == 0 || cloexec&unix.FD_CLOEXEC == 0 || nodelay == 0 {
			t.Errorf("flags 0x%x, 0x%x, no delay %d", flags, cloexec, nodelay)
		}
		Close(fd)
	}
}

func TestAcceptWaits(t *testing.T) {
	svc := testService(t)
	key, secret := svc.NewKey(), []byte("secret")
	box := svc.Expect(key, secret)
	got := make(chan error)
	go func() {
		c, err := box.Accept(7, 3, within(10))
		if err == nil {
			Close(c.FD)
		}
		got <- err
	}()
	c, err := Dial(svc.Addrs(), key, secret, 3, 7, within(5))
	if err != nil {
		t.Fatal(err)
	}
	Close(c.FD)
	if err := <-got; err != nil {
		t.Error(err)
	}
	go func() { _, err := box.Accept(7, 3, Limit{}); got <- err }()
	box.Close()
	if err := <-got; !errors.Is(err, unix.ECANCELED) {
		t.Errorf("Accept at a closed inbox: %v", err)
	}
}

func TestLimits(t *testing.T) {
	svc := testService(t)
	key, secret := svc.NewKey(), []byte("secret")
	box := svc.Expect(key, secret)
	defer box.Close()
	var silent *SilentError
	if _, err := box.Accept(1, 4, within(0.05)); !errors.As(err, &silent) || silent.Rank != 4 {
		t.Errorf("nobody connects: %v", err)
	}
	stop := errors.New("stop")
	abort := Limit{Abort: func() error { return stop }}
	if _, err := box.Accept(1, 4, abort); err != stop {
		t.Errorf("Accept aborted: %v", err)
	}
	nobody := []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(freePort(t)))}
	if _, err := Dial(nobody, key, secret, 0, 1, abort); err != stop {
		t.Errorf("Dial aborted: %v", err)
	}
	for _, s := range []float64{0.2, 20} { // short of a second, and long enough to see that nobody will come
		_, err := Dial(nobody, key, secret, 0, 1, within(s))
		if !errors.As(err, &silent) || silent.Gone != (s > 2) || !strings.Contains(err.Error(), nobody[0].String()) {
			t.Errorf("nobody listens: %v", err)
		}
	}
}

func TestProofIsDemanded(t *testing.T) {
	svc := testService(t)
	key := svc.NewKey()
	box := svc.Expect(key, []byte("secret"))
	defer box.Close()
	if _, err := Dial(svc.Addrs(), key, []byte("guess"), 0, 1, within(0.3)); err == nil {
		t.Error("a wrong secret was accepted")
	}
	if _, err := Dial(svc.Addrs(), svc.NewKey(), []byte("secret"), 0, 1, within(0.3)); err == nil {
		t.Error("an unknown key was accepted")
	}
	if _, ok, _, _ := box.take(func(arrival) bool { return true }); ok {
		t.Error("a connection without proof arrived")
	}
}

// fdCount keeps the books that the shim would.
type fdCount struct {
	mu   sync.Mutex
	open map[int]bool
	bad  int
}

var books = &fdCount{open: map[int]bool{}}

func (c *fdCount) Opened(fd int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[fd] {
		c.bad++
	}
	c.open[fd] = true
}

func (c *fdCount) Closed(fd int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open[fd] {
		c.bad++
	}
	delete(c.open, fd)
}

func (c *fdCount) count() (open, bad int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open), c.bad
}

// Who looks for a rank of its own process that has given up is told so at once, and does not ask for a second whether it really has.
func TestRankOfThisProcessHasGone(t *testing.T) {
	svc, err := Default()
	if err != nil {
		t.Fatal(err)
	}
	key, secret := svc.NewKey(), []byte("secret")
	svc.Expect(key, secret).Close()
	if _, err := Dial(svc.Addrs(), key, secret, 0, 1, within(60)); err == nil || !strings.Contains(err.Error(), errClosed.Error()) {
		t.Errorf("got %v, want %v", err, errClosed)
	}
}

// Meetings, also those that fail, leave no descriptor, and the books agree with the kernel's.
func TestDescriptorsAreReported(t *testing.T) {
	svc := testService(t)
	m := newMaker(t)
	wantMet(t, 4, meetAll(m.ID(), 4, upTo(4), same(within(10))))
	settled(t, func() bool { // only the listener is left, also of earlier tests
		svc.mu.Lock()
		defer svc.mu.Unlock()
		open, _ := books.count()
		return len(svc.inboxes) == 0 && open == 1
	})
	before := descriptors(t)
	wantMet(t, 5, meetAll(m.ID(), 5, upTo(5), same(within(10))))
	meetAll(m.ID(), 5, upTo(3), same(within(0.1)))
	settled(t, func() bool { return slices.Equal(descriptors(t), before) })
	if open, bad := books.count(); open != 1 || bad > 0 {
		t.Errorf("%d descriptors are open by the books, which have %d wrong entries", open, bad)
	}
}

func descriptors(t *testing.T) []string {
	t.Helper()
	var out []string
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			out = append(out, to)
		}
	}
	return out
}

// settled waits until the Service's goroutine has seen what happened.
func settled(t *testing.T, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(5 * time.Second); !ok(); pollFor(nil, time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("it does not settle")
		}
	}
}
