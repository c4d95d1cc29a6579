package testkit

import (
	"runtime"
	"testing"
	"time"
)

// Within fails the test, with the stacks of all goroutines, if f has not returned after d. Then f is left running.
func Within(t testing.TB, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s has not ended within %v\n%s", what, d, Stacks())
	}
}

// Stacks are those of all goroutines.
func Stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}

// Eventually waits for a condition and fails the test where it does not come true.
func Eventually(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(200 * time.Microsecond)
	defer tick.Stop()
	for end := time.Now().Add(d); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s did not come within %v\n%s", what, d, Stacks())
		}
	}
}
