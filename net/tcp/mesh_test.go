package tcp

import (
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/secure"
	"hccl.dev/hccl/internal/secure/securetest"
	"hccl.dev/hccl/net/staging"
	"hccl.dev/hccl/proto"
)

// hang is how long anything may take before the test says what was waited for.
const hang = 20 * time.Second

// TestMain fails the run when descriptors, goroutines or staging are left.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		child()
		return
	}
	if r, w, err := os.Pipe(); err == nil { // the runtime's poller makes its own descriptors, and keeps them
		_, _ = r.Close(), w.Close()
	}
	FDs = &kept
	before := descriptors()
	code := m.Run()
	if code == 0 {
		if err := leaks(before); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func leaks(before int) error {
	for end := time.Now().Add(hang); ; runtime.Gosched() { // goroutines of the last fabric are on their way out
		after, left := descriptors(), staging.Shared.Stats().Out
		if after <= before && kept.count() == 0 && left == 0 && (fuzzing() || runtime.NumGoroutine() <= 1) {
			return nil
		}
		if time.Now().After(end) {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			return fmt.Errorf("left behind: descriptors %d of %d before (%d announced), %d buffers, %d goroutines", after,
				before, kept.count(), left, runtime.NumGoroutine())
		}
	}
}

// fuzzing reports whether the test binary has goroutines of its own that stay.
func fuzzing() bool {
	f := flag.Lookup("test.fuzz")
	return f != nil && f.Value.String() != ""
}

// kept checks the hook: what it was told of is open, and is told of once.
var kept fdSet

type fdSet struct {
	mu   sync.Mutex
	open map[int]bool // guarded by mu
}

func (s *fdSet) Opened(fd int) { s.set(fd, true) }
func (s *fdSet) Closed(fd int) { s.set(fd, false) }

func (s *fdSet) set(fd int, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[int]bool{}
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || s.open[fd] == open {
		panic(fmt.Sprintf("descriptor %d: told open %v, was %v, %v", fd, open, s.open[fd], err))
	}
	if s.open[fd] = open; !open {
		delete(s.open, fd)
	}
}

func (s *fdSet) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func descriptors() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// node is one rank of a test, in a process of its own as far as this package can tell: its fabric, and what it was told.
type node struct {
	*Fabric
	links []*Link       // by rank
	bell  chan struct{} // something came
	polls bool          // the thread reads itself
	cuts  atomic.Int32  // rails that failed

	mu       sync.Mutex
	messages map[int][]string // guarded by mu
	gone     map[int]error    // guarded by mu
}

// zeroCopying is from how many bytes on the nodes of a test send without a copy: as a rank does that sets nothing.
var zeroCopying = zeroAuto

func newNode(me, n int) *node {
	net := NewNet()
	net.Tune(Options{ZeroCopy: zeroCopying})
	links := make([]*Link, n)
	for r := range links {
		if r != me {
			links[r] = net.NewLink(func() {})
		}
	}
	d := joined(net, links, 1, me)
	for _, l := range links {
		if l != nil {
			l.OnRail(func(int, error) { d.cuts.Add(1) })
		}
	}
	return d
}

// joined is rank me of communicator id, whose ranks are reached by links.
func joined(net *Net, links []*Link, id uint64, me int) *node {
	d := &node{links: links, bell: make(chan struct{}, 1), messages: map[int][]string{}, gone: map[int]error{}}
	d.Fabric = New(net, id, me, len(links), d.ring)
	d.OnControl(func(rank int, b []byte) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.messages[rank] = append(d.messages[rank], string(b))
		return true
	})
	d.OnGone(func(rank int, err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.gone[rank] != nil {
			panic("told twice")
		}
		d.gone[rank] = err
	})
	for r, l := range links {
		if l == nil {
			continue
		}
		if err := d.Join(r, l); err != nil {
			panic(err)
		}
	}
	return d
}

// Add gives the link to a rank its first rail.
func (d *node) Add(rank, fd int) error { return d.AddRail(rank, 0, fd, nil) }

func (d *node) AddRail(rank, rail, fd int, keys *secure.Session) error {
	return d.links[rank].AddRail(rail, fd, keys)
}

// Tend looks after the rails of the node's process.
func (d *node) Tend() { d.net.Tend() }

// Close leaves the communicator and ends the process's links.
func (d *node) Close(drain time.Duration) {
	d.Fabric.Close(drain)
	for _, l := range d.links {
		if l != nil {
			l.Close()
		}
	}
}

// rail is one that leads to peer.
func (d *node) rail(peer, rail int) *conn { return d.links[peer].rails[rail].Load() }

func (d *node) ring() {
	select {
	case d.bell <- struct{}{}:
	default:
	}
}

func (d *node) goneErr(rank int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone[rank]
}

func (d *node) heard(rank int) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.messages[rank]...)
}

// until waits for done as core does: look, poll, give, look again, sleep.
func (d *node) until(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	late := time.NewTimer(hang)
	defer late.Stop()
	for !done() {
		if d.polls {
			d.Take()
			for i := 0; i < 200; i++ {
				if d.Poll() && done() {
					d.Give()
					return
				}
			}
			d.Give()
			if done() {
				return
			}
		}
		select {
		case <-d.bell:
		case <-late.C:
			buf := make([]byte, 1<<20)
			tb.Fatalf("rank %d: no %s within %v\n%s", d.me, what, hang, buf[:runtime.Stack(buf, true)])
		}
	}
}

type wiring func(tb testing.TB) (a, b int)

// mesh connects n ranks, each with each.
func mesh(tb testing.TB, n int, wire wiring) []*node { return railed(tb, n, 1, wire) }

// railed is mesh with several rails between any two ranks.
func railed(tb testing.TB, n, rails int, wire wiring) []*node {
	return sealedBy(tb, n, rails, wire, inClear)
}

// sealedBy is railed with keys for each connection.
func sealedBy(tb testing.TB, n, rails int, wire wiring, keys keying) []*node {
	nodes := make([]*node, n)
	for r := range nodes {
		nodes[r] = newNode(r, n)
		tb.Cleanup(func() { nodes[r].Close(0) })
	}
	for a := range nodes {
		for b := range a {
			for k := range rails {
				layBy(tb, nodes, a, b, k, wire, keys)
			}
		}
	}
	return nodes
}

// lay connects ranks a and b by a rail.
func lay(tb testing.TB, nodes []*node, a, b, rail int, wire wiring) {
	tb.Helper()
	layBy(tb, nodes, a, b, rail, wire, inClear)
}

func layBy(tb testing.TB, nodes []*node, a, b, rail int, wire wiring, keys keying) {
	tb.Helper()
	x, y := wire(tb)
	j, k := keys(tb)
	if err := nodes[a].AddRail(b, rail, x, j); err != nil {
		tb.Fatal(err)
	}
	if err := nodes[b].AddRail(a, rail, y, k); err != nil {
		tb.Fatal(err)
	}
}

func pair(tb testing.TB) (a, b int) {
	tb.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return fds[0], fds[1]
}

// loopback makes both ends of a TCP connection.
func loopback(tb testing.TB) (a, b int) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	x, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	y, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	return raw(tb, x), raw(tb, y)
}

// raw is c's descriptor without c.
func raw(tb testing.TB, c net.Conn) int {
	tb.Helper()
	defer c.Close()
	file, err := c.(*net.TCPConn).File()
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		tb.Fatal(err)
	}
	return fd
}

func outOf(tb testing.TB, d *node, kind proto.Kind, channel, peer int) proto.Out {
	tb.Helper()
	o, err := d.Out(kind, channel, peer)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func inOf(tb testing.TB, d *node, kind proto.Kind, channel, peer int) proto.In {
	tb.Helper()
	i, err := d.In(kind, channel, peer)
	if err != nil {
		tb.Fatal(err)
	}
	return i
}

// put writes a slice, and reports false when there is no room.
func put(tb testing.TB, o proto.Out, b []byte) bool {
	tb.Helper()
	p, err := o.Reserve(uint64(len(b)), 0)
	if err != nil {
		tb.Fatal(err)
	}
	if p == 0 {
		return false
	}
	copy(device.Bytes(p, uint64(len(b))), b)
	o.Commit(uint64(len(b)))
	return true
}

// get reads a slice; ok is false when there is none.
func get(tb testing.TB, i proto.In) (b []byte, ok bool) {
	tb.Helper()
	p, n, err := i.Peek()
	if err != nil {
		tb.Fatal(err)
	}
	if p == 0 {
		return nil, false
	}
	b = append([]byte{}, device.Bytes(p, n)...)
	i.Release()
	return b, true
}

// eachWay runs a test over both kinds of sockets, sealed ones, and over several rails, read by the background and by the thread itself.
func eachWay(t *testing.T, n int, run func(t *testing.T, nodes []*node)) {
	for name, rails := range map[string]int{"unix": 1, "tcp": 1, "sealed": 1, "rails": 3} {
		wire, keys := loopback, inClear
		switch name {
		case "unix":
			wire = pair
		case "sealed":
			keys = securetest.Pair
		}
		for _, polls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/polls=%v", name, polls), func(t *testing.T) {
				nodes := sealedBy(t, n, rails, wire, keys)
				for _, d := range nodes {
					d.polls = polls
				}
				run(t, nodes)
			})
		}
	}
}
