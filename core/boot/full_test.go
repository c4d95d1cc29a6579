package boot

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/testkit"
)

// A process that has no descriptor left for a connection says so, as the others only see that it does not answer; later it takes it.
func TestNoDescriptorForAConnection(t *testing.T) {
	svc := testService(t)
	said, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	t.Cleanup(func() { log.Configure(log.LevelNone, 0, "") })
	log.Configure(log.LevelWarn, 0, said.Name())
	log.WarnOnce("open", "the file is open before there is no descriptor for it")
	family, sa := sockaddr(svc.Addrs()[len(svc.Addrs())-1])
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var before unix.Rlimit
	next, err := unix.Dup(fd)
	if err != nil || unix.Getrlimit(unix.RLIMIT_NOFILE, &before) != nil {
		t.Fatal(err)
	}
	unix.Close(next)
	restore := func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) }
	t.Cleanup(restore)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next), Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(fd, sa); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 4096)
	testkit.Eventually(t, 10*time.Second, "warning", func() bool {
		n, _ := said.ReadAt(text, 0)
		return strings.Contains(string(text[:n]), "no connection of another process can be taken: too many open files")
	})
	restore()
	greeting := make([]byte, challengeSize)
	if n, err := unix.Read(fd, greeting); n != challengeSize {
		t.Errorf("%d bytes of a greeting, %v", n, err)
	}
}
