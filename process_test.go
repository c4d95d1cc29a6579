package hccl_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"hccl.dev/hccl"
)

// A test that needs ranks in other processes starts this binary again with a role in the environment:
//
//	"sum ID RANK N"   init, two all-reduces, "done", close
//	"hold ID RANK N"  init, "ready", then it waits until it is killed
const roleVariable = "HCCL_GO_TEST_ROLE"

func play(role string) error {
	var what, text string
	var rank, n int
	if _, err := fmt.Sscan(role, &what, &text, &rank, &n); err != nil {
		return err
	}
	id, err := hccl.ParseID(text)
	if err != nil {
		return err
	}
	c, err := hccl.Init(background, id, rank, n)
	if err != nil {
		return err
	}
	if what == "hold" {
		fmt.Println("ready")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	for _, count := range []int{1, 100000} {
		if err := sumOfRanks(c, count); err != nil {
			return err
		}
	}
	fmt.Println("done")
	return c.Close()
}

func sumOfRanks(c *hccl.Comm, count int) error {
	buf, want := make([]int64, count), make([]int64, count)
	for i := range buf {
		buf[i], want[i] = int64(c.Rank()), int64(c.Size()*(c.Size()-1)/2)
	}
	return first(hccl.AllReduce(background, c, buf, buf, hccl.Sum), same("sum of ranks", buf, want))
}

type process struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

// start starts a rank of its own; it is killed when the test ends, if it has not ended by then.
func start(t *testing.T, role ...any) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+strings.TrimSpace(fmt.Sprintln(role...)))
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		in.Close()
	})
	return &process{cmd, bufio.NewScanner(out)}
}

func (p *process) wantLine(t *testing.T, want string) {
	t.Helper()
	if !p.out.Scan() || p.out.Text() != want {
		t.Fatalf("the other process says %q, want %q", p.out.Text(), want)
	}
}

func newID(t *testing.T) hccl.ID {
	t.Helper()
	id, err := hccl.NewID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// Two ranks here, two in processes of their own; the id goes by its text.
func TestProcesses(t *testing.T) {
	over(t, func(t *testing.T) {
		id := newID(t)
		others := []*process{start(t, "sum", id.Text(), 1, 4), start(t, "sum", id.Text(), 3, 4)}
		must(t, make([]*hccl.Comm, 2), rankOf(id, 4, func(c *hccl.Comm) error {
			return first(sumOfRanks(c, 1), sumOfRanks(c, 100000))
		}))
		for _, p := range others {
			p.wantLine(t, "done")
			if err := p.cmd.Wait(); err != nil {
				t.Error(err)
			}
		}
	})
}

// rankOf makes ranks 0 and 2 in turn, for those who call it, and has them do something.
func rankOf(id hccl.ID, n int, do func(c *hccl.Comm) error) func(*hccl.Comm) error {
	ranks := make(chan int, 2)
	ranks <- 0
	ranks <- 2
	return func(*hccl.Comm) error {
		c, err := hccl.Init(background, id, <-ranks, n)
		if err != nil {
			return err
		}
		return first(do(c), c.Close())
	}
}

// A process that is killed is named by all who wait for it, and by Err where nobody does.
func TestKilledProcess(t *testing.T) {
	over(t, func(t *testing.T) {
		id := newID(t)
		other := start(t, "hold", id.Text(), 1, 3)
		errs := each(t, make([]*hccl.Comm, 2), rankOf(id, 3, func(c *hccl.Comm) error {
			if c.Rank() == 0 {
				other.wantLine(t, "ready")
				other.cmd.Process.Kill()
			}
			err := sumOfRanks(c, 1000)
			if again := c.Err(); !errors.Is(again, hccl.ErrRemote) {
				t.Errorf("Err is %v after %v", again, err)
			}
			return err
		}))
		for _, err := range errs {
			e := wantError(t, err, hccl.ErrRemote, "rank 1 is gone")
			if !slices.Equal(e.Ranks, []int{1}) {
				t.Errorf("%v names ranks %v", e, e.Ranks)
			}
		}
	})
}

// Who waits for ranks that never come is let go by its context. (That HCCL_INIT_TIMEOUT names them is in TestBadInits.)
func TestAbsentRanks(t *testing.T) {
	ctx, cancel := context.WithTimeout(background, shortly)
	defer cancel()
	_, err := hccl.Init(ctx, newID(t), 0, 2)
	wantError(t, err, hccl.ErrContext)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is not the context's error", err)
	}
}
