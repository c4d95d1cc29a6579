package log

import (
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// fresh gives the test a log of its own into a file, with nothing said yet, and returns what it says.
func fresh(t *testing.T, level Level, s Subject) func() string {
	t.Helper()
	once = sync.Map{}
	path := filepath.Join(t.TempDir(), "log")
	Configure(level, s, path)
	t.Cleanup(func() { Configure(LevelWarn, ordinary, ""); Configure(LevelNone, 0, "") })
	return func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

func TestLevels(t *testing.T) {
	for level, want := range map[Level]int{LevelVersion: 1, LevelWarn: 2, LevelInfo: 3, LevelTrace: 4} {
		t.Run(level.String(), func(t *testing.T) {
			said := fresh(t, level, ordinary)
			Warn("a")
			Info(Net, "b")
			Info(Coll, "not ordinary")
			Trace(Net, "c")
			if got := strings.Count(said(), "\n"); got != want {
				t.Errorf("%d lines, want %d: %s", got, want, said())
			}
		})
	}
}

func TestForm(t *testing.T) {
	said := fresh(t, LevelInfo, All)
	Rank(3).Info(Coll, "all-reduce of %d elements\n\tand \x1b[31m\n", 7)
	lines := strings.Split(said(), "\n")
	want := regexp.MustCompile(`^[^: ]+:\d+:\d+ \[3\] HCCL INFO all-reduce of 7 elements$`)
	if lines[0] != "NCCL version 2.32.3 (HCCL "+Release+")" || !want.MatchString(lines[1]) || lines[2] != "     and ?[31m" || len(lines) != 4 {
		t.Errorf("%q", lines)
	}
}

func TestTimeInFront(t *testing.T) {
	t.Cleanup(func() { stamping.Store(nil) })
	Stamp(func() string { return "[now] " }, LevelWarn, LevelVersion)
	said := fresh(t, LevelInfo, All)
	Warn("w")
	Info(Net, "i")
	lines := strings.Split(said(), "\n")
	for k, want := range []string{"[now] NCCL version ", "[now] " + host() + ":", host() + ":"} {
		if !strings.HasPrefix(lines[k], want) {
			t.Errorf("%q does not begin with %q", lines[k], want)
		}
	}
}

func TestOnce(t *testing.T) {
	once = sync.Map{}
	WarnOnce("k", "while off") // must not use the key up
	said := fresh(t, LevelInfo, All)
	for range 3 {
		WarnOnce("k", "said")
		InfoOnce(Net, "n", "told")
	}
	if got := said(); strings.Count(got, "said") != 1 || strings.Count(got, "told") != 1 {
		t.Error(got)
	}
}

func TestOffIsSilentAndMakesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	Configure(LevelNone, All, path)
	Warn("x")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file was made, or %v", err)
	}
	if got := testing.AllocsPerRun(100, func() { Warn("off"); Info(All, "off") }); got != 0 {
		t.Errorf("%v allocations for lines that are off", got)
	}
}

func TestExpand(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Skip("no host name: ", err)
	}
	if got := expand("a.%h.%p.%%"); !strings.HasPrefix(got, "a."+name+".") || !strings.HasSuffix(got, ".%") || strings.Contains(got, "%p") {
		t.Error(got)
	}
}

func TestFileThatCannotBeOpened(t *testing.T) {
	once = sync.Map{}
	r, w := pipe(t)
	onStderr(t, w)
	Configure(LevelWarn, ordinary, "/nowhere/at/all")
	Configure(LevelNone, 0, "")
	b := make([]byte, 4096)
	n, _ := unix.Read(r, b)
	if n2, err := unix.Read(r, b[n:]); err == nil {
		n += n2
	}
	if got := string(b[:n]); !strings.Contains(got, "/nowhere/at/all") || !strings.Contains(got, "no such file") {
		t.Error(got)
	}
}

func TestParse(t *testing.T) {
	for s, want := range map[string]Subject{"": ordinary, "ALL": All, "net, Init": Net | Init, "^NET": All &^ Net,
		"^init,NVLS": All &^ Init &^ NVLS} {
		if got, err := ParseSubjects(s); err != nil || got != want {
			t.Errorf("%q: %x, %v, want %x", s, got, err, want)
		}
	}
	for _, s := range []string{"NETT", ",", "^"} {
		if _, err := ParseSubjects(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
	if l, err := ParseLevel("info"); l != LevelInfo || err != nil {
		t.Error(l, err)
	}
	if _, err := ParseLevel("inof"); err == nil || !strings.Contains(err.Error(), "INFO") {
		t.Error(err)
	}
}

// A reader of stderr that has gone must not bring the host a SIGPIPE, whatever stderr is.
func TestNoSigpipe(t *testing.T) {
	heard := make(chan os.Signal, 8)
	signal.Notify(heard, unix.SIGPIPE, unix.SIGWINCH)
	t.Cleanup(func() { signal.Stop(heard) })
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(pair[1]) })
	r, w := pipe(t)
	for what, ends := range map[string][2]int{"socket": pair, "pipe": {r, w}} {
		_ = unix.Close(ends[0])
		if got := signals(heard, func() { _, _ = unix.Write(ends[1], []byte("x")) }); got != 1 {
			t.Errorf("%s: a plain write raised %d signals, want 1: the test sees nothing", what, got)
		}
		o := output{fd: ends[1]}
		if got := signals(heard, func() { o.write([]byte("x\n")) }); got != 0 {
			t.Errorf("%s: the log raised %d signals", what, got)
		}
	}
}

// signals counts the SIGPIPEs that do raises. Signals are handed on in the order of their numbers, so that once the SIGWINCH sent
// after it is here, a SIGPIPE would be too.
func signals(heard chan os.Signal, do func()) (n int) {
	do()
	_ = unix.Kill(os.Getpid(), unix.SIGWINCH)
	for s := range heard {
		if s == unix.SIGWINCH {
			return n
		}
		n++
	}
	return n
}

func pipe(t *testing.T) (r, w int) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(p[1]) })
	return p[0], p[1]
}

// onStderr puts fd in the place of stderr for the test.
func onStderr(t *testing.T, fd int) {
	t.Helper()
	kept, err := unix.FcntlInt(stderr, unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Dup3(fd, stderr, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Dup3(kept, stderr, 0); _ = unix.Close(kept) })
}
