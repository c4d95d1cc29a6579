package links

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/net/tcp"
)

// Who asks for a connection when the last one has just ended is heard, also by a keeper that has seen that one a moment before.
func TestWantedWhenTheLastOneEnds(t *testing.T) {
	f := &Far{pool: &Pool{kick: make(chan struct{}, 1)}}
	f.link = tcp.NewNet().NewLink(f.needs)
	defer f.link.Close()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.link.AddRail(0, fds[0], nil); err != nil {
		t.Fatal(err)
	}
	f.needs()
	if !f.served() || f.wanted.Load() {
		t.Errorf("there is a connection, and one is wanted: %v", f.wanted.Load())
	}
	unix.Close(fds[1])
	testkit.Eventually(t, 20*time.Second, "end of the connection", func() bool { return !f.link.Open() })
	if f.served() || f.wanted.Load() {
		t.Errorf("there is none; nobody wants one, and one is wanted: %v", f.wanted.Load())
	}
	f.needs()
	if f.served() || !f.wanted.Load() {
		t.Error("what is wanted was forgotten")
	}
}
