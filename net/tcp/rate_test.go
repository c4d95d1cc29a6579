package tcp

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
)

// bookOf answers with the sum of what is posted and what another process tells.
type bookOf struct{ other Account }

func (b *bookOf) Post(_ uint64, a Account) Account {
	return Account{a.Hungry + b.other.Hungry, a.Reserved + b.other.Reserved, a.Sent + b.other.Sent}
}

// fakeLine is a line of three connections without sockets, at 1000 bytes per second.
func fakeLine() *line {
	l := &line{rate: 1000, pace: 1000, since: time.Unix(100, 0)}
	for range 3 {
		l.conns = append(l.conns, &shaped{conn: &conn{fd: -1}})
	}
	return l
}

// The bound of a card is divided among those that want more, of all processes, beside what the others need.
func TestDivisionOfARate(t *testing.T) {
	b := &bookOf{Account{Hungry: 2, Reserved: 100}}
	Rates = b
	t.Cleanup(func() { Rates = nil })
	l := fakeLine()
	l.conns[0].blocked.Store(true)
	l.conns[0].sent.Store(400)
	l.conns[1].sent.Store(900) // 9 tenths of what it may
	l.conns[2].sent.Store(100)
	l.sum = 400 // of the 1400: as much was sent in this second as may be
	l.divide(l.since.Add(time.Second))
	if want := (1000. - 100 - 100) / 4; l.pace != want {
		t.Errorf("%v bytes per second each, want %v", l.pace, want)
	}
}

// What was not sent may be sent soon, and what was sent too much is saved; neither without end.
func TestRateOverGaps(t *testing.T) {
	l := fakeLine()
	c := l.conns[0].conn
	now := l.since
	step := func(bytes uint64, d time.Duration) {
		now = now.Add(d)
		c.sent.Add(bytes)
		c.blocked.Store(true)
		l.divide(now)
	}
	step(1000, time.Second)
	if l.pace != 1000 {
		t.Errorf("%v with all that it may, want 1000", l.pace)
	}
	step(0, time.Hour)
	if want := 1000 + 1000*mostSpare.Seconds()/spendTime.Seconds(); l.pace != want {
		t.Errorf("%v after a gap, want %v", l.pace, want)
	}
	step(1_000_000, time.Second)
	if want := 1000 * leastPart; l.pace != want {
		t.Errorf("%v after a flood, want %v", l.pace, want)
	}
	step(0, mostOwed)
	if l.pace != 1000 {
		t.Errorf("%v when it is paid back, want 1000", l.pace)
	}
}

// Connections of one host are nobody's card; one between addresses is bounded while it is there.
func TestWhatIsShaped(t *testing.T) {
	nodes := railed(t, 2, 1, loopback)
	within := nodes[0].rail(1, 0)
	shaping.add(within, 1000)
	for _, d := range nodes {
		d.net.Tune(Options{Rate: 54321})
	}
	lay(t, nodes, 0, 1, 1, apart)
	for rail, want := range []int{-1, 54321} {
		c := nodes[0].rail(1, rail)
		if got, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE); err != nil || got != want {
			t.Errorf("rail %d may send %d bytes per second (%v), want %d", rail, got, err, want)
		}
	}
	for _, d := range nodes {
		d.Close(0)
	}
	testkit.Eventually(t, hang, "end of all lines", func() bool { return !shaping.turn(time.Now()) })
}

// apart is a connection between two addresses.
func apart(tb testing.TB) (a, b int) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	x, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	y, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	return raw(tb, x), raw(tb, y)
}

// What the user asked for is what the sockets have.
func TestSocketOptions(t *testing.T) {
	a, b := loopback(t)
	defer unix.Close(a)
	defer unix.Close(b)
	o := Options{TrafficClass: 0x68, SendBuffer: 64 << 10, ReceiveBuffer: 96 << 10}
	o.apply(a)
	for _, c := range []struct {
		name             string
		level, opt, want int
	}{{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(patientTime / time.Millisecond)},
		{"TOS", unix.IPPROTO_IP, unix.IP_TOS, 0x68},
		{"SO_SNDBUF", unix.SOL_SOCKET, unix.SO_SNDBUF, 2 * 64 << 10},
		{"SO_RCVBUF", unix.SOL_SOCKET, unix.SO_RCVBUF, 2 * 96 << 10}} { // the kernel doubles buffers, for its own books
		if got, err := unix.GetsockoptInt(a, c.level, c.opt); err != nil || got != c.want {
			t.Errorf("%s is %d (%v), want %d", c.name, got, err, c.want)
		}
	}
}
