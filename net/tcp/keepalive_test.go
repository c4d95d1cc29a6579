package tcp

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
)

// Rails that nothing goes by are probed all at once, ever more rarely, without anything that counts as use; a lone rail is not.
func TestIdleRailsAreProbed(t *testing.T) {
	const first, early = 10 * time.Second, 5 * time.Second
	nodes := railed(t, 2, 2, loopback)
	l := nodes[0].links[1]
	before, _ := l.Moved()
	look := func() { l.inquire(time.Now(), first) }
	look() // it sees them for the first time
	for pause := first; pause <= 2*first; pause *= 2 {
		testkit.Eventually(t, hang, "quiet", func() bool { return time.Duration(heard(t, l).Last_ack_recv)*time.Millisecond > leastQuiet })
		sent := heard(t, l).Segs_out
		passes(l, pause-early)
		if look(); asked(l, 0) || asked(l, 1) {
			t.Fatalf("rails are probed before %v are over", pause)
		}
		passes(l, early)
		if look(); !asked(l, 0) || !asked(l, 1) {
			t.Fatalf("no rail is probed after %v", pause)
		}
		testkit.Eventually(t, hang, "answers", func() bool {
			nodes[0].Tend()
			return !asked(l, 0) && !asked(l, 1)
		})
		if now := heard(t, l).Segs_out; now == sent {
			t.Error("nothing was sent to ask")
		}
	}
	if moved, waits := l.Moved(); moved != before || waits || l.live() != 3 {
		t.Errorf("%d bytes moved, some wait: %v; live rails %b", moved-before, waits, l.live())
	}
	l.rails[1].Load().fail(errClosed)
	passes(l, time.Hour)
	if look(); asked(l, 0) {
		t.Error("the only rail is probed")
	}
}

func asked(l *Link, rail int) bool { return !l.rails[rail].Load().asking.asked.IsZero() }

// heard is what the kernel knows of rail 1.
func heard(t *testing.T, l *Link) *unix.TCPInfo {
	info, err := unix.GetsockoptTCPInfo(l.rails[1].Load().fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// passes has the rails of a link take so much time for passed.
func passes(l *Link, d time.Duration) {
	for k := range 2 {
		q := &l.rails[k].Load().asking
		q.quiet, q.next = q.quiet.Add(-d), q.next.Add(-d)
	}
}
