package core

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
)

// child is another process of this binary, which plays a role. The two talk by lines.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t testing.TB, role string, args ...any) *child {
	t.Helper()
	return startBy(t, exec.Command(os.Args[0]), role, args...)
}

// startBy is start for a command that runs this binary.
func startBy(t testing.TB, cmd *exec.Cmd, role string, args ...any) *child {
	t.Helper()
	c := &child{t: t, cmd: cmd}
	c.cmd.Env = append(append(os.Environ(), cmd.Env...), roleVariable+"="+role+" "+strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
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
	c.in.Close()
}

// line is the next thing the child says.
func (c *child) line() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Error("the other process ended")
		return ""
	}
	return c.out.Text()
}

// rankRole is one rank in a process of its own: after init it says "ready", then does what it is told.
//
//	sum COUNT     one all-reduce            -> "done" or "error ..."
//	hold          nothing, until it is killed
//	end           destroys and leaves
func rankRole(in *bufio.Scanner, args []string) error {
	id, err := hex.DecodeString(args[0])
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(args[1])
	r, _ := strconv.Atoi(args[2])
	c, err := initRank(spec(id, n, r, true))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for in.Scan() {
		word, arg, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "sum":
			count, _ := strconv.ParseUint(arg, 10, 64)
			if err := sum(c, count); err != nil {
				return err
			}
			fmt.Println("done")
		case "end":
			return c.Destroy()
		}
	}
	return nil
}

// with makes a communicator whose last rank is another process.
func withProcess(t testing.TB, transport string, n int) (*world, *child) {
	t.Helper()
	id := ids.ID()
	if transport == "tcp" {
		t.Setenv("NCCL_SHM_DISABLE", "1")
	}
	other := start(t, "rank", hex.EncodeToString(id), n, n-1)
	w := &world{t: t, comms: make([]*Comm, n)}
	w.must(w.each(func(r int) (err error) {
		if r < n-1 {
			w.comms[r], err = initRank(spec(id, n, r, true))
		}
		return err
	}))
	if got := other.line(); got != "ready" {
		t.Fatal(got)
	}
	return w, other
}

// here runs f on the ranks of this process.
func (w *world) here(f func(c *Comm) error) []error {
	w.t.Helper()
	return w.each(func(r int) error {
		if w.comms[r] == nil {
			return nil
		}
		return f(w.comms[r])
	})
}

func (w *world) leave(how func(c *Comm) error) {
	w.t.Helper()
	w.must(w.here(how))
}

// Ranks of two processes work together, and those that stay are told of the one that left.
func TestTwoProcesses(t *testing.T) {
	overEach(t, func(t *testing.T) {
		w, other := withProcess(t, nameOf(t), 3)
		for _, count := range []uint64{10, 3000, 300000} {
			fmt.Fprintln(other.in, "sum", count)
			w.must(w.here(func(c *Comm) error { return sum(c, count) }))
			if got := other.line(); got != "done" {
				t.Fatal(got)
			}
		}
		fmt.Fprintln(other.in, "end")
		for r, err := range w.here(func(c *Comm) error { return sum(c, 10) }) {
			if r < 2 {
				wantError(t, err, RemoteError, "rank 2 has left the communicator", "all-reduce")
			}
		}
		w.leave((*Comm).Destroy)
	})
}

// nameOf is the transport that a subtest of overEach is for.
func nameOf(t *testing.T) string { return t.Name()[strings.LastIndex(t.Name(), "/")+1:] }

// A process that is killed is named by all who wait for it, soon, in whatever they are; also by who asks without a call.
func TestKilledProcessIsNamed(t *testing.T) {
	buffer := make([]byte, 1<<20)
	waits := map[string]func(c *Comm) error{
		"mail":  func(c *Comm) error { return sum(c, 10) },
		"plan":  func(c *Comm) error { return sum(c, 400000) },
		"recv":  func(c *Comm) error { m := letterCall(coll.Recv, make([]byte, 10), c.n-1); return do(c, &m) },
		"send":  func(c *Comm) error { m := letterCall(coll.Send, buffer, c.n-1); return do(c, &m) },
		"split": func(c *Comm) error { _, err := splitOff(c, 0, 0); return err },
		"query": awaitFailure,
	}
	overEach(t, func(t *testing.T) {
		transport := nameOf(t)
		for name, wait := range waits {
			t.Run(name, func(t *testing.T) {
				w, other := withProcess(t, transport, 3)
				var killed time.Time
				begun := make(chan struct{})
				go func() {
					defer close(begun)
					testkit.Eventually(t, patience, "ranks to wait", func() bool {
						return name == "query" || w.comms[0].inside.Load()+w.comms[1].inside.Load() == 2
					})
					killed = time.Now()
					other.cmd.Process.Kill()
				}()
				errs := w.here(wait)
				<-begun
				t.Logf("after %v", time.Since(killed))
				for r, err := range errs {
					if r < 2 {
						wantError(t, err, RemoteError, "rank 2 is gone", "its process has ended")
					}
				}
				w.leave((*Comm).Abort)
			})
		}
	})
}

// A process that is killed while ranks wait for it to connect ends their init.
func TestKilledDuringInit(t *testing.T) {
	overEach(t, func(t *testing.T) {
		transport := nameOf(t)
		if transport == "tcp" {
			t.Setenv("NCCL_SHM_DISABLE", "1")
		}
		id := ids.ID()
		other := start(t, "rank", hex.EncodeToString(id), 3, 2) // rank 1 never comes
		done := make(chan error, 1)
		s := spec(id, 3, 0, true)
		testkit.Setenv(t, "HCCL_INIT_TIMEOUT", "1")
		go func() { done <- Enqueue([]Item{{Init: s}}) }()
		testkit.Eventually(t, patience, "rank 0 to begin", func() bool { return Find(s.ID) != nil })
		other.kill()
		var err error
		testkit.Within(t, patience, "the init of rank 0", func() { err = <-done })
		if ResultOf(err) != RemoteError && ResultOf(err) != Timeout || !strings.Contains(err.Error(), "2") {
			t.Errorf("%d: %v", ResultOf(err), err)
		}
	})
}
