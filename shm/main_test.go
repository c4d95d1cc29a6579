package shm

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A test that needs another process starts this binary again with a role in the environment. The two talk by lines: what the
// child prints on its standard output, and what the test writes to its standard input.
const roleVariable = "HCCL_SHM_TEST_ROLE"

var roles = map[string]func(in *bufio.Scanner, args []string) error{}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		args := strings.Fields(role)
		if err := roles[args[0]](bufio.NewScanner(os.Stdin), args[1:]); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, role string, args ...any) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+role+" "+strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	c.cmd.Stderr = os.Stderr
	c.in, _ = c.cmd.StdinPipe()
	out, _ := c.cmd.StdoutPipe()
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func (c *child) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

func (c *child) line() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatal("the other process ended")
	}
	if s := c.out.Text(); !strings.HasPrefix(s, "error ") {
		return s
	}
	c.t.Fatal("the other process: ", c.out.Text())
	return ""
}

func parseKey(s string) (k Key) {
	hex.Decode(k[:], []byte(s))
	return k
}

func (k Key) hex() string { return hex.EncodeToString(k[:]) }

func soon() time.Time { return time.Now().Add(10 * time.Second) }

func open(t testing.TB) *Local {
	t.Helper()
	l, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// host makes one segment and n ranks of it in this process.
func host(t testing.TB, n, channels int) []*Segment {
	t.Helper()
	l := open(t)
	segs := make([]*Segment, n)
	ranks, peers := make([]int, n), make([]*Peer, n)
	for i := range n {
		ranks[i], peers[i] = i, l.self
	}
	var err error
	if segs[0], err = Create(n, channels); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < n; i++ {
		fd, err := unix.FcntlInt(uintptr(segs[0].FD()), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			segs[i], err = Map(fd, n, channels)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range segs {
		if err := s.Join(i, ranks, peers); err != nil {
			t.Fatal(err)
		}
		s.CloseFD()
	}
	return segs
}

func leave(segs []*Segment) {
	for _, s := range segs {
		s.SetState(Left)
	}
	for _, s := range segs {
		s.Close()
	}
}
