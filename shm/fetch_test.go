package shm

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
)

// Ranks of a process that want the same memory ask once, and each gets a descriptor of its own; one that gives up takes nobody along.
func TestFetchTogether(t *testing.T) {
	l := open(t)
	before := openDescriptors(t)
	for _, firstStops := range []bool{false, true} {
		const n = 20
		key, got := NewKey(), make(chan int, n)
		fetch := func(stop func() bool) {
			fd, err := l.Fetch(l.Name(), key, soon(), stop)
			if err != nil && (err != errStopped || stop == nil) {
				t.Error(err)
			}
			got <- fd
		}
		users := func() int {
			l.mu.Lock()
			defer l.mu.Unlock()
			if f := l.fetches[[2]Key{l.Name(), key}]; f != nil {
				return f.users
			}
			return 0
		}
		var stopped atomic.Bool
		go fetch(stopped.Load) // which asks for all
		testkit.Eventually(t, 20*time.Second, "the first", func() bool { return users() == 1 })
		for range n - 1 {
			go fetch(nil)
		}
		testkit.Eventually(t, 20*time.Second, "the others", func() bool { return users() == n })
		rest := n
		if firstStops {
			stopped.Store(true)
			rest--
			if fd := <-got; fd != -1 {
				t.Errorf("who was stopped got %d", fd)
			}
		}
		l.OfferArena(key)
		seen := map[int]bool{}
		for range rest {
			seen[<-got] = true
		}
		l.Withdraw(key)
		if len(seen) != rest || seen[-1] || users() != 0 {
			t.Errorf("descriptors %v, %d still fetch", seen, users())
		}
		for fd := range seen {
			unix.Close(fd)
		}
	}
	testkit.Eventually(t, 20*time.Second, "as many descriptors as before", func() bool { return openDescriptors(t) == before })
}
