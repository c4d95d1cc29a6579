package staging

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// flags are the marks of the mapping that holds b, as the kernel lists them.
func flags(t *testing.T, b *Buf) string {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	inside := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var from, to uint64
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); n == 2 {
			inside = from <= uint64(b.Addr()) && uint64(b.Addr()) < to
		}
		if text, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && inside {
			return text + " "
		}
	}
	t.Fatal("no mapping holds the buffer")
	return ""
}

func TestMemoryHasItsComforts(t *testing.T) {
	if !mayLock() {
		t.Skip("needs the right to lock memory")
	}
	var p Pool
	small, large := p.Get(1, false), p.Get(128<<10, false)
	for _, c := range []struct {
		b    *Buf
		flag string
		want bool
	}{
		{small, " lo ", true}, {large, " lo ", true}, // locked
		{small, " dc ", true}, {large, " dc ", true}, // not copied by a fork
		{small, " hg ", false}, {large, " hg ", p.refused[huge] == ""}, // huge pages
	} {
		if got := strings.Contains(flags(t, c.b), c.flag); got != c.want {
			t.Errorf("buffer of %d bytes: mark%sis %v: %s", len(c.b.Bytes()), c.flag, got, flags(t, c.b))
		}
	}
	if uint64(large.Addr())%4096 != 0 || uint64(small.Addr())%4096 != 0 {
		t.Error("not on page borders")
	}
}

// TestALowLimitIsLeftToTheProgram takes the right to lock from one thread: the pool does without and says why.
func TestALowLimitIsLeftToTheProgram(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&head, &sets[0]); err != nil {
		t.Skip(err)
	}
	sets[unix.CAP_IPC_LOCK/32].Effective &^= 1 << (unix.CAP_IPC_LOCK % 32)
	if err := unix.Capset(&head, &sets[0]); err != nil {
		t.Skip(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil || limit.Cur >= DefaultMost {
		t.Skipf("the limit is %d", limit.Cur)
	}
	var p Pool
	b := p.Get(128<<10, false)
	if b == nil || strings.Contains(flags(t, b), " lo ") {
		t.Error("it took of the program's limit")
	}
	if why := p.refused[locked]; !strings.Contains(why, "RLIMIT_MEMLOCK") {
		t.Errorf("the reason is %q", why)
	}
	if s := p.Stats(); strings.Contains(s.Comforts, comforts[locked]) {
		t.Errorf("it claims to be %s", s.Comforts)
	}
}

func TestMemoryIsOnTheNodeThatIsPreferred(t *testing.T) {
	where := func(b *Buf) string {
		text, err := os.ReadFile("/proc/self/numa_maps")
		if err != nil {
			t.Skip(err)
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			var from uint64
			if n, _ := fmt.Sscanf(line, "%x", &from); n == 1 && from <= uint64(b.Addr()) && uint64(b.Addr()) < from+DefaultGrowth {
				return line
			}
		}
		return ""
	}
	var p, q Pool
	p.Prefer(0)
	q.Prefer(0)
	q.Prefer(1) // of no avail: there are two opinions
	for k, pool := range []*Pool{&p, &q} {
		b := pool.Get(1, false)
		b.Bytes()[0] = 1
		line := where(b)
		if pool.refused[placed] != "" {
			t.Skip(pool.refused[placed])
		}
		if got := strings.Contains(line, "prefer"); got != (k == 0) {
			t.Errorf("%d: %q", k, line)
		}
	}
}
