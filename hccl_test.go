package hccl_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hccl.dev/hccl"
	"hccl.dev/hccl/internal/testkit"
)

// patience is how long a test waits for what should take milliseconds.
const patience = 20 * time.Second

var background = context.Background()

func TestMain(m *testing.M) {
	flag.Parse()
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(role); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(run(m))
}

// run has the tests leave nothing behind but what the first communicators leave for ever.
func run(m *testing.M) int {
	for _, disable := range []string{"1", ""} {
		testkit.SetAlways("NCCL_SHM_DISABLE", disable)
		comms, err := hccl.InitAll(background, 2)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		for _, c := range comms {
			c.Close()
		}
	}
	before := testkit.Count()
	code := m.Run()
	if err := before.Balanced(10 * time.Second); code == 0 && err != nil {
		fmt.Println("left behind by the tests:", err)
		return 1
	}
	return code
}

// over runs f with ranks that share memory, and with ranks that do not.
func over(t *testing.T, f func(t *testing.T)) {
	for _, transport := range []string{"shm", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			if transport == "tcp" {
				testkit.Setenv(t, "NCCL_SHM_DISABLE", "1")
			}
			f(t)
		})
	}
}

// world makes n ranks, which leave when the test ends.
func world(t testing.TB, n int) []*hccl.Comm {
	t.Helper()
	comms, err := hccl.InitAll(background, n, hccl.Name(t.Name()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range comms {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return comms
}

// each runs f for every rank on a goroutine of its own and returns the errors by rank.
func each(t testing.TB, comms []*hccl.Comm, f func(c *hccl.Comm) error) []error {
	t.Helper()
	errs := make([]error, len(comms))
	testkit.Within(t, patience, "what all ranks do", func() {
		var wg sync.WaitGroup
		for r, c := range comms {
			wg.Go(func() { errs[r] = f(c) })
		}
		wg.Wait()
	})
	return errs
}

// must is each for what succeeds on all ranks.
func must(t testing.TB, comms []*hccl.Comm, f func(c *hccl.Comm) error) {
	t.Helper()
	for r, err := range each(t, comms, f) {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
}

// same reports how got differs from want.
func same[T comparable](what string, got, want []T) error {
	if slices.Equal(got, want) {
		return nil
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Errorf("%s: element %d of %d is %v, want %v", what, i, len(want), got[i], want[i])
		}
	}
	return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
}

// wantError fails unless err is of the kind and says all of the parts.
func wantError(t testing.TB, err error, kind hccl.Kind, parts ...string) *hccl.Error {
	t.Helper()
	var e *hccl.Error
	if !errors.As(err, &e) || !errors.Is(err, kind) {
		t.Errorf("error %v, wanted %v", err, kind)
		return &hccl.Error{}
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%q does not say %q", err, p)
		}
	}
	return e
}
