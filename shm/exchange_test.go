package shm

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	roles["serve"] = serveRole
	roles["pong"] = pongRole
}

// serveRole offers its arena under a key and lives until it is killed or told to end. With "fork" a forked child of it holds
// all of its descriptors and lives on.
func serveRole(in *bufio.Scanner, args []string) error {
	l, err := Open()
	if err != nil {
		return err
	}
	l.OfferArena(parseKey(args[0]))
	r, err := l.arena.alloc(pageSize, nil)
	if err != nil {
		return err
	}
	word64(l.arena.base + uintptr(r.off)).Store(4711)
	name := l.Name()
	fmt.Println(name.hex(), r.off, forked(args[1]))
	in.Scan()
	return nil
}

// forked makes a child as a data loader does: a copy of the process without its threads. It only waits to be killed.
func forked(arg string) uintptr {
	if arg != "fork" {
		return 0
	}
	pid, _, _ := unix.RawSyscall(unix.SYS_FORK, 0, 0, 0)
	for pid == 0 {
		unix.RawSyscall(unix.SYS_PAUSE, 0, 0, 0)
	}
	return pid
}

// server is a process that serves, as the test sees it.
type server struct {
	*child
	key, name Key
	off       uint64
}

func serve(t *testing.T, arg string) *server {
	s := &server{key: NewKey()}
	s.child = start(t, "serve", s.key.hex(), arg)
	var name string
	var grandchild int
	fmt.Sscan(s.line(), &name, &s.off, &grandchild)
	s.name = parseKey(name)
	if grandchild > 0 {
		t.Cleanup(func() { unix.Kill(grandchild, unix.SIGKILL) })
	}
	return s
}

// A process's death is seen at once by each of the three ways, also while a forked child of it holds its sockets.
func TestDeath(t *testing.T) {
	l := open(t)
	defer func(was int) { pidfdWays = was }(pidfdWays)
	for ways := range 3 {
		pidfdWays = ways
		for _, arg := range []string{"alone", "fork"} {
			s := serve(t, arg)
			p, err := l.Connect(s.name, s.key, soon(), nil)
			if err != nil {
				t.Fatal(ways, arg, err)
			}
			if (p.process.pidfd >= 0) != (ways > 0) {
				t.Errorf("%d ways allowed: pidfd %d", ways, p.process.pidfd)
			}
			if got := word64(p.view.base + uintptr(s.off)).Load(); got != 4711 {
				t.Errorf("the peer's arena holds %d", got)
			}
			dead := make(chan struct{})
			cancelled := p.Watch(func() { t.Error("a watch that was taken back was called") })
			cancelled()
			p.Watch(func() { close(dead) })
			if !p.Alive() {
				t.Error("dead before it was killed")
			}
			s.kill()
			select {
			case <-dead:
			case <-time.After(5 * time.Second):
				t.Fatalf("%d ways, %s: the death went unseen", ways, arg)
			}
			if p.Alive() {
				t.Error("still alive")
			}
			called := false
			p.Watch(func() { called = true })
			if !called {
				t.Error("a watch of a dead process was not called")
			}
			p.Release()
		}
	}
	if n := len(l.peers) + len(l.x.procs); n != 0 {
		t.Errorf("%d peers and processes are left", n)
	}
}

// Two users share one mapping, and the last takes it down.
func TestConnectShares(t *testing.T) {
	l := open(t)
	s := serve(t, "alone")
	a, err := l.Connect(s.name, s.key, soon(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Connect(s.name, Key{}, soon(), nil) // the key has been proved
	if err != nil || a != b {
		t.Fatal("not the same peer", err)
	}
	a.Release()
	if got := word64(b.view.base + uintptr(s.off)).Load(); got != 4711 {
		t.Errorf("the shared mapping holds %d", got)
	}
	b.Release()
	if len(l.peers) != 0 {
		t.Error("the peer is left in the table")
	}
}

// A fetch may come before its offer, and ends at its deadline, when it is stopped, and where nobody is.
func TestFetch(t *testing.T) {
	l := open(t)
	key := NewKey()
	got := make(chan error, 1)
	go func() {
		fd, err := l.Fetch(l.Name(), key, soon(), nil)
		if err == nil {
			_, err = checkMemory(fd, false)
			unix.Close(fd)
		}
		got <- err
	}()
	if _, err := l.Fetch(l.Name(), NewKey(), time.Now().Add(30*time.Millisecond), nil); err != errDeadline {
		t.Errorf("nothing offered: %v", err)
	}
	if _, err := l.Fetch(l.Name(), NewKey(), soon(), func() bool { return true }); err != errStopped {
		t.Errorf("stopped: %v", err)
	}
	if _, err := l.Fetch(NewKey(), key, soon(), nil); !errors.Is(err, ErrElsewhere) {
		t.Errorf("nobody there: %v", err)
	}
	l.OfferArena(key)
	if err := <-got; err != nil {
		t.Error(err)
	}
	l.Withdraw(key)
	if _, err := l.Fetch(l.Name(), key, time.Now().Add(30*time.Millisecond), nil); err != errDeadline {
		t.Errorf("after it was withdrawn: %v", err)
	}
}

// Connections that say nothing or nonsense neither keep a fetch from its answer nor stay.
func TestStrangers(t *testing.T) {
	l := open(t)
	key := NewKey()
	l.OfferArena(key)
	defer l.Withdraw(key)
	before := openDescriptors(t)
	var fds []int
	for k := range 3 * maxStrangers {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, address(l.Name()))
		}
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
		if k%2 == 0 { // the other end may have hung up already
			unix.Sendmsg(fd, []byte("GET / HTTP/1.1\r\n\r\nand more than a request is long"[:k%40]), nil, nil, unix.MSG_NOSIGNAL)
		}
		if k%16 == 0 {
			got, err := l.Fetch(l.Name(), key, soon(), nil)
			if err != nil {
				t.Fatal(err)
			}
			unix.Close(got)
		}
	}
	closeAll(fds)
	waitUntil(t, "strangers' connections are closed", func() bool { return openDescriptors(t) <= before })
}

func FuzzRequest(f *testing.F) {
	r := request{life: true, key: Key{1, 2, 3}}
	f.Add(r.bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r request
		if r.parse(b) && string(r.bytes()) != string(b) {
			t.Errorf("%x was read as %+v", b, r)
		}
	})
}

// waitUntil polls a condition that another goroutine brings about.
func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := soon(); !ok(); Yield() {
		if time.Now().After(end) {
			t.Fatal("not within 10 s: ", what)
		}
	}
}

func openDescriptors(t *testing.T) int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// Nothing has a name in /dev/shm or /tmp, during use or after a kill.
func TestNothingIsLeft(t *testing.T) {
	before := names(t)
	s := serve(t, "alone")
	during := names(t)
	s.kill()
	if after := names(t); before != during || before != after {
		t.Errorf("before %s, during %s, after %s", before, during, after)
	}
}

func names(t *testing.T) string {
	list, err := os.ReadDir("/dev/shm")
	if err != nil {
		t.Skip(err)
	}
	s := strconv.Itoa(len(list))
	for _, e := range list {
		s += " " + e.Name()
	}
	return s
}

// A thousand connections and segments leave no descriptor and no mapping.
func TestCyclesLeakNothing(t *testing.T) {
	l := open(t)
	s := serve(t, "alone")
	cycle := func() {
		p, err := l.Connect(s.name, s.key, soon(), nil)
		if err != nil {
			t.Fatal(err)
		}
		leave(host(t, 2, 1))
		p.Release()
	}
	cycle()
	fds, maps := openDescriptors(t), mappings(t)
	for range 1000 {
		cycle()
	}
	if f, m := openDescriptors(t), mappings(t); f > fds || m > maps+8 { // Go's heap may have grown
		t.Errorf("%d descriptors and %d mappings, before %d and %d", f, m, fds, maps)
	}
}

func mappings(t *testing.T) (n int) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); n++ {
	}
	return n
}
