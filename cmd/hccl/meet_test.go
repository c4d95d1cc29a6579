package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// meetAll lets every process of a world meet, as goroutines, and exchange once: each must then have what all found.
func meetAll(t *testing.T, size int, join func(w *world) (*hub, error)) {
	t.Helper()
	done := make(chan error, size)
	for rank := range size {
		go func() {
			h, err := join(&world{rank: rank, size: size, oneHost: true, pmi: -1, job: "test/" + t.Name()})
			if err == nil {
				err = exchangeOnce(h)
			}
			done <- err
		}()
	}
	for range size {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func exchangeOnce(h *hub) error {
	const per = 2
	p := new(page)
	if h.rank == 0 {
		p.id[5] = 42
	}
	for k := range per {
		p.of[h.rank*per+k].wrong = int64(100*h.rank + k)
	}
	if err := h.share(p, per); err != nil {
		return err
	}
	for r := range h.size * per {
		if p.of[r].wrong != int64(100*(r/per)+r%per) {
			return fmt.Errorf("rank %d sees %d of %d", h.rank, p.of[r].wrong, r)
		}
	}
	if p.id[5] != 42 {
		return errors.New("another id")
	}
	return nil
}

func soon() time.Time { return time.Now().Add(20 * time.Second) }

// Somebody else sits at MASTER_PORT: torchrun's store, which waits for others to speak first.
func TestMeetBesideAnotherListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	port := l.Addr().(*net.TCPAddr).Port
	if port > 65000 {
		t.Skip("no room for ports above that one")
	}
	meetAll(t, 4, func(w *world) (*hub, error) {
		w.master, w.masterPort = "localhost", port
		return meetAtMaster(w, soon())
	})
}

// A file that a killed job has left leads to a port where nobody listens; the next job's rank 0 replaces it and takes it away.
func TestMeetByFileThoughOneIsLeft(t *testing.T) {
	m := &meeting{folder: t.TempDir()}
	w := &world{job: "test/" + t.Name()}
	if err := os.WriteFile(m.file(w), []byte("127.0.0.1:1 secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	meetAll(t, 5, func(w *world) (*hub, error) { return m.byFile(w, soon()) })
	if left, _ := filepath.Glob(filepath.Join(m.folder, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What is not this user's own file is not believed.
func TestLinksAreNoFiles(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "target"), filepath.Join(folder, "link")
	if err := errors.Join(os.WriteFile(target, []byte("x y"), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := ownFile(target); err != nil {
		t.Error(err)
	}
	if _, err := ownFile(link); err == nil {
		t.Error("a link is believed")
	}
}

// Strangers and processes of other jobs neither join nor hold anybody up; the absent are named.
func TestAbsentAreNamedAndStrangersStayOut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	silent, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	result := make(chan error, 1)
	go func() {
		_, err := gather(l.(*net.TCPListener), 4, "key", time.Now().Add(2*time.Second))
		result <- err
	}()
	if _, err := attend(at, 1, 4, "other key"); !errors.Is(err, errStranger) {
		t.Errorf("with another key: %v", err)
	}
	if _, err := attend(at, 2, 4, "key"); err != nil {
		t.Error(err)
	}
	_, _ = attend(at, 3, 5, "key") // of a larger world
	if err := <-result; err == nil || !strings.Contains(err.Error(), "processes [1 3] did not come") {
		t.Errorf("%v", err)
	}
}

// A process that ends is named by rank 0, and rank 0 by the others.
func TestLostProcessIsNamed(t *testing.T) {
	here, there := net.Pipe()
	_ = there.Close()
	for want, h := range map[string]*hub{"rank 4 is gone": {size: 2, conns: []net.Conn{nil, here}},
		"rank 0 is gone": {rank: 1, size: 2, conns: []net.Conn{here}}} {
		if err := h.share(new(page), 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The manager's side of PMI-1 for three processes, as MPICH's wire protocol has it.
func TestMeetThroughProcessManager(t *testing.T) {
	const size = 3
	fds := make(chan int, size)
	m := new(fakeManager)
	m.coming.Add(size)
	for range size {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fds <- pair[0]
		go m.serve(os.NewFile(uintptr(pair[1]), "manager"))
	}
	meetAll(t, size, func(w *world) (*hub, error) {
		w.pmi = <-fds
		return meetByPMI(w, soon())
	})
}

type fakeManager struct {
	coming sync.WaitGroup // the barrier
	value  atomic.Value
}

func (m *fakeManager) serve(f *os.File) {
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		answer := map[string]string{"cmd=init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
			"cmd=get_my_kvsname": "cmd=my_kvsname kvsname=kvs_1", "cmd=put": "cmd=put_result rc=0 msg=success",
			"cmd=barrier_in": "cmd=barrier_out", "cmd=finalize": "cmd=finalize_ack"}[words[0]]
		switch words[0] {
		case "cmd=put":
			m.value.Store(strings.TrimPrefix(words[3], "value="))
		case "cmd=barrier_in":
			m.coming.Done()
			m.coming.Wait()
		case "cmd=get":
			answer = "cmd=get_result rc=0 msg=success value=" + m.value.Load().(string)
		}
		_, _ = fmt.Fprintln(f, answer)
	}
}

func TestManagerThatRefuses(t *testing.T) {
	m := &manager{w: new(strings.Builder), r: bufio.NewReader(strings.NewReader("cmd=put_result rc=-1 msg=full\n"))}
	if _, err := m.ask("cmd=put", "put_result"); err == nil || !strings.Contains(err.Error(), "msg=full") {
		t.Errorf("%v", err)
	}
}
