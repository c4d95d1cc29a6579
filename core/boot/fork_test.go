package boot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The maker dies while one rank waits; a child of it that joined answers in its place, for this id and for others not used yet.
func TestHeir(t *testing.T) {
	m := newMaker(t)
	used, id, other := m.ID(), m.ID(), m.ID()
	wantMet(t, 2, meetAll(used, 2, upTo(2), same(within(10))))
	for _, heir := range []string{"idle", "heir", "heir"} { // two compete, one must not
		if got := m.Ask(fmt.Sprintf("%s %x", heir, id)); got != "ok" {
			t.Fatal(got)
		}
	}
	waiting := make(chan struct{})
	first := make(chan error)
	asked := 0
	go func() {
		_, err := Meet(id, 0, 3, blobOf(0), Limit{Deadline: time.Now().Add(30 * time.Second), Abort: func() error {
			if asked++; asked == 20 {
				close(waiting)
			}
			return nil
		}})
		first <- err
	}()
	<-waiting
	m.Kill()
	wantMet(t, 3, meetAll(id, 3, []int{1, 2}, same(within(30))))
	if err := <-first; err != nil {
		t.Fatalf("the rank that waited: %v", err)
	}
	wantMet(t, 2, meetAll(other, 2, upTo(2), same(within(10))))
	var was *UsedError
	if _, err := Meet(used, 0, 2, nil, within(10)); !errors.As(err, &was) {
		t.Errorf("a used id after the maker's death: %v", err)
	}
}

// Ranks connect while the maker is stopped, so that nobody greets them. The heir does, once the maker has been killed.
func TestHeirGreetsThoseWhoWait(t *testing.T) {
	m := newMaker(t)
	id := m.ID()
	if got := m.Ask(fmt.Sprintf("heir %x", id)); got != "ok" {
		t.Fatal(got)
	}
	pid := m.Cmd.Process.Pid
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus // it comes when all threads have stopped
	if _, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the maker was to stop: %v, status %x", err, status)
	}
	var asked sync.WaitGroup
	asked.Add(3 * 20)
	lim := func(int) Limit {
		left := 20
		return Limit{Deadline: time.Now().Add(30 * time.Second), Abort: func() error {
			if left--; left >= 0 {
				asked.Done()
			}
			return nil
		}}
	}
	got := make(chan map[int]outcome)
	go func() { got <- meetAll(id, 3, upTo(3), lim) }()
	asked.Wait()
	m.Kill()
	wantMet(t, 3, <-got)
}

func TestForkWhileMakerLives(t *testing.T) {
	m := newMaker(t)
	first := m.ID()
	for range 3 { // make an id, fork, init in the children: again and again
		id := m.ID()
		if got := m.Ask(fmt.Sprintf("heir %x", id)); got != "ok" {
			t.Fatal(got)
		}
		wantMet(t, 4, meetAll(id, 4, upTo(4), same(within(10))))
	}
	wantMet(t, 2, meetAll(first, 2, upTo(2), same(within(10))))
	// The children stood by, each with a thread, until their ids were used.
	tasks := fmt.Sprintf("/proc/%d/task/%[1]d/children", m.Cmd.Process.Pid)
	children, err := os.ReadFile(tasks)
	if err != nil || len(strings.Fields(string(children))) != 3 {
		t.Fatalf("children: %q, %v", children, err)
	}
	for _, pid := range strings.Fields(string(children)) {
		settled(t, func() bool {
			threads, err := os.ReadDir("/proc/" + pid + "/task")
			return err == nil && len(threads) == 1
		})
	}
	if got := m.Ask("loaded"); got != "sockets 0" {
		t.Errorf("a child of a process with the core loaded has %s", got)
	}
}

// A child that makes ids of its own answers for them, and for its maker's once that is dead.
func TestForkedMaker(t *testing.T) { forkedMaker(t) }

// The fork comes right after the id: whatever the maker's thread locks in its start must not be locked in the child.
func TestForkWhileThreadStarts(t *testing.T) { forkedMaker(t, "ROOT_SLOW_START=1") }

func forkedMaker(t *testing.T, env ...string) {
	m := newMaker(t, env...)
	id := m.ID()
	own, err := hex.DecodeString(m.Ask(fmt.Sprintf("child %x", id)))
	if err != nil {
		t.Fatal(err)
	}
	if !m.Out.Scan() || m.Out.Text() != "ok" {
		t.Fatal(m.Out.Text())
	}
	a, _ := parseID(id)
	if b, err := parseID(own); err != nil || b.root == a.root || b.addrs[0] == a.addrs[0] {
		t.Errorf("the child's id is of its parent's root: %v", err)
	}
	wantMet(t, 3, meetAll(own, 3, upTo(3), same(within(10))))
	m.Kill()
	wantMet(t, 3, meetAll(id, 3, upTo(3), same(within(10))))
}
