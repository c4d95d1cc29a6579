package core

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/shm/fast"
)

// patience is how long a test waits for what should take milliseconds.
const patience = 20 * time.Second

var transports = []string{"shm", "tcp", "mixed"}

// overEach runs a test over shared memory, over TCP, and over both at once.
func overEach(t *testing.T, f func(t *testing.T)) {
	for _, tr := range transports {
		t.Run(tr, func(t *testing.T) {
			use(t, tr)
			f(t)
		})
	}
}

// mixedVariable tells this process and those it starts that even and odd ranks take themselves for ranks of two hosts.
const mixedVariable = "CORE_TEST_MIXED"

func use(t testing.TB, transport string) {
	switch transport {
	case "tcp":
		testkit.Setenv(t, "NCCL_SHM_DISABLE", "1")
	case "mixed":
		os.Setenv(mixedVariable, "1")
		t.Cleanup(func() { os.Unsetenv(mixedVariable) })
	}
}

// settle gives a communicator that is to be made the host that mixedVariable asks for.
func settle(c *Comm) {
	if os.Getenv(mixedVariable) != "" {
		v := *c.settings
		v.HostID = fmt.Sprint("host ", c.rank%2)
		c.settings = &v
	}
}

// handle is a Handle that remembers what it was told.
type handle struct {
	ready  atomic.Int32 // ranks, once there is a communicator; 0 again when it is taken back
	failed atomic.Pointer[string]
}

func (h *handle) Ready(rank, n int, hot *fast.Hot) { h.ready.Store(int32(n)) }
func (h *handle) Failed(text string)               { h.failed.Store(&text) }

var lastID atomic.Uint64

func nextID() uint64 { return lastID.Add(1) }

// spec asks for rank r of n under an id.
func spec(id []byte, n, r int, blocking bool) *InitSpec {
	return &InitSpec{ID: nextID(), Handle: &handle{}, N: n, Rank: r, IDs: [][]byte{id}, Blocking: blocking, Name: "test", Began: settle}
}

// world is the ranks of one communicator, all in this process.
type world struct {
	t     testing.TB
	comms []*Comm
}

func newWorld(t testing.TB, n int) *world {
	t.Helper()
	id := ids.ID()
	w := &world{t: t, comms: make([]*Comm, n)}
	w.must(w.each(func(r int) (err error) {
		w.comms[r], err = initRank(spec(id, n, r, true))
		return err
	}))
	return w
}

// initRank makes one rank and waits for it.
func initRank(s *InitSpec) (*Comm, error) {
	items := []Item{{Init: s}}
	if err := Enqueue(items); err != nil {
		return nil, err
	}
	return Find(s.ID), nil
}

// each runs f for every rank on a thread of its own, and returns the errors by rank.
func (w *world) each(f func(r int) error) []error {
	w.t.Helper()
	errs := make([]error, len(w.comms))
	testkit.Within(w.t, patience, "what all ranks do", func() {
		var wg sync.WaitGroup
		for r := range errs {
			wg.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				errs[r] = f(r)
			})
		}
		wg.Wait()
	})
	return errs
}

func (w *world) must(errs []error) {
	w.t.Helper()
	for r, err := range errs {
		if err != nil {
			w.t.Fatalf("rank %d of %d: %v", r, len(errs), err)
		}
	}
}

func (w *world) destroy() {
	w.t.Helper()
	w.must(w.each(func(r int) error { return w.comms[r].Destroy() }))
}

// forget ends what a test has broken: whatever comes back, all is released.
func (w *world) abort() {
	w.t.Helper()
	w.each(func(r int) error {
		if c := w.comms[r]; c != nil && Find(c.id) == c {
			return c.Abort()
		}
		return nil
	})
}

// do is one call, alone.
// do runs a call. An address keeps no memory alive: what call points into is kept until the call has returned, through the part
// that call lies in.
func do(c *Comm, call *Call) error {
	defer runtime.KeepAlive(call)
	return c.Do(call, 0)
}

// wantError fails unless err has the result and its text has all the parts.
func wantError(t testing.TB, err error, r Result, parts ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Result != r {
		t.Errorf("error %v (%d), wanted result %d", err, ResultOf(err), r)
		return
	}
	for _, p := range parts {
		if !strings.Contains(e.Text, p) {
			t.Errorf("the text %q does not say %q", e.Text, p)
		}
	}
}

func rankName(r int) string { return fmt.Sprintf("rank %d", r) }
