package cases

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// shell runs a program in a mount namespace of its own, after lines of shell.
func shell(t *testing.T, p path, lines string, argv ...string) {
	t.Helper()
	run(t, p.env, append([]string{"unshare", "-m", "sh", "-ec", lines + "\nexec \"$@\"", "sh"}, argv...)...)
}

func TestContainers(t *testing.T) {
	t.Run("C30 tiny /dev/shm", func(t *testing.T) {
		needsRoot(t)
		binary := build(t, "case_container")
		for name, lines := range map[string]string{
			"64 KiB":     "mount -t tmpfs -o size=64k tmpfs /dev/shm",
			"1 MiB":      "mount -t tmpfs -o size=1m tmpfs /dev/shm",
			"1 MiB free": "mount -t tmpfs -o size=64m tmpfs /dev/shm; dd if=/dev/zero of=/dev/shm/full bs=1M count=63 2>/dev/null",
			"read-only":  "mount -t tmpfs -o ro tmpfs /dev/shm",
		} {
			t.Run(name, func(t *testing.T) { shell(t, shared, lines, binary, "ops") })
		}
	})
	t.Run("C32 a crash leaves nothing", func(t *testing.T) {
		binary := build(t, "case_container")
		before := remains(t)
		run(t, shared.env, binary, "crash")
		for name := range remains(t) {
			if !before[name] {
				t.Errorf("%s is left behind", name)
			}
		}
	})
	for _, how := range []string{"ipc", "pid", "net"} {
		t.Run("C33 namespaces, "+how, func(t *testing.T) {
			needsRoot(t)
			try(t, both, "case_container", "apart", how)
		})
	}
	for _, how := range []string{"plain", "users", "caps"} {
		t.Run("C36 no right to read a neighbour, "+how, func(t *testing.T) {
			if how != "plain" {
				needsRoot(t)
			}
			try(t, both, "case_container", "rights", how)
		})
	}
}

// remains lists what of ours outlives a process by name. Abstract sockets and mappings go with it.
func remains(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, pattern := range []string{"/dev/shm/*", "/tmp/*hccl*", "/tmp/*nccl*", "/var/tmp/*hccl*", "/run/*hccl*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			found[n] = true
		}
	}
	return found
}

// C35: two users' jobs side by side; half of them are killed and started again all the time. The steady ones check that every value is
// their own.
func TestNeighbours(t *testing.T) {
	binary := build(t, "case_container")
	ctx, cancel := context.WithCancel(t.Context())
	var steady, restless sync.WaitGroup
	for k := range 6 {
		user := uint32(0)
		if k%2 == 1 && os.Geteuid() == 0 {
			user = 65534
		}
		stamp := fmt.Sprint(100 + k)
		if k < 3 {
			steady.Go(func() { neighbour(t, t.Context(), user, binary, stamp) })
			continue
		}
		restless.Go(func() {
			for wait := 200 * time.Millisecond; ctx.Err() == nil; wait += 150 * time.Millisecond {
				life, end := context.WithTimeout(ctx, wait)
				neighbour(t, life, user, binary, stamp)
				end()
			}
		})
	}
	steady.Wait()
	cancel()
	restless.Wait()
}

// neighbour runs one job as a user, until it ends or ctx does.
func neighbour(t *testing.T, ctx context.Context, user uint32, binary, stamp string) {
	inner, cancel := context.WithTimeout(ctx, limit())
	defer cancel()
	cmd := command(inner, nil, binary, "steady", stamp)
	if user != 0 {
		cmd.SysProcAttr.Credential = as(user)
	}
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		t.Errorf("job %s of user %d: %v\n%s", stamp, user, err, out)
	}
}

// C25: a fixed address for job after job.
func TestFixedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	binary := build(t, "case_start")
	for _, p := range both {
		t.Run(p.name, func(t *testing.T) {
			run(t, append([]string{"NCCL_COMM_ID=" + address, "HCCL_INIT_TIMEOUT=20"}, p.env...), binary, "fixed")
		})
	}
}

// C22: strangers at every port that the ranks listen at.
func TestStrangers(t *testing.T) {
	binary := build(t, "case_start")
	for _, p := range both {
		t.Run(p.name, func(t *testing.T) {
			calm := slowest(t, run(t, p.env, binary, "rounds"))
			s := knock(t)
			said := run(t, append([]string{"NCCL_DEBUG=INFO"}, p.env...), binary, "rounds")
			disturbed := slowest(t, said)
			if !strings.Contains(said, "connections that proved nothing were turned away") {
				t.Error("the log does not count the strangers")
			}
			knocks := s.stop()
			t.Logf("slowest round %.3f s, with %d strangers %.3f s", calm, knocks, disturbed)
			if knocks == 0 {
				t.Error("no stranger found a port: the case shows nothing")
			}
			if disturbed > 2*calm+2 { // the case says 1 on a machine that does nothing else
				t.Errorf("a round took %.3f s with strangers, %.3f without", disturbed, calm)
			}
		})
	}
}

func slowest(t *testing.T, out string) (seconds float64) {
	t.Helper()
	_, after, ok := strings.Cut(out, "slowest ")
	if _, err := fmt.Sscan(after, &seconds); !ok || err != nil {
		t.Fatalf("no slowest round in %q", out)
	}
	return seconds
}
