package root

import (
	"strings"
	"sync"
	"testing"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/internal/testkit"
)

func TestRanksMeet(t *testing.T) {
	for range 3 {
		id, err := NewID()
		if err != nil {
			t.Fatal(err)
		}
		meet(t, id, 5)
	}
}

// meet lets n ranks of this process meet under id.
func meet(t *testing.T, id [IDSize]byte, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			if err := Join(&id, r); err != nil {
				t.Errorf("rank %d: %v", r, err)
				return
			}
			blobs, err := boot.Meet(id[:], r, n, []byte{byte(r)}, boot.Limit{Deadline: time.Now().Add(20 * time.Second)})
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
				return
			}
			for k, b := range blobs {
				if len(b) != 1 || int(b[0]) != k {
					t.Errorf("rank %d got %v from rank %d", r, b, k)
				}
			}
		})
	}
	wg.Wait()
}

func TestIDsDiffer(t *testing.T) {
	a, err := NewID()
	if err != nil {
		t.Fatal(err)
	}
	if b, err := NewID(); err != nil || a == b {
		t.Errorf("the second id is the first (%v)", err)
	}
}

// A setting that changes while the program runs counts: the C asks package params, and that asks C's environment.
func TestSettingsReachTheRoot(t *testing.T) {
	testkit.Setenv(t, "NCCL_SOCKET_IFNAME", "=nosuch0")
	_, err := NewID()
	if e, ok := err.(*Error); !ok || e.Result() != 5 || !strings.Contains(e.Error(), "nosuch0") {
		t.Errorf("an interface that is not there: %v", err)
	}
}

func TestJoinRefusesOtherBytes(t *testing.T) {
	var id [IDSize]byte
	if e, ok := Join(&id, 0).(*Error); !ok || e.Result() != 4 || !strings.Contains(e.Error(), "not made by") {
		t.Errorf("zeros as an id: %v", e)
	}
}
