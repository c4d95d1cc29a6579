package core

import (
	"testing"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
)

// A message up to the limit leaves without its receive, a longer one waits for it, and lets the shorter one behind it pass.
func TestEagerLimit(t *testing.T) {
	for _, it := range []struct {
		transport, limit string
		bytes            uint64
	}{
		{"shm", "", nearEager}, {"tcp", "", farEager}, {"mixed", "", farEager},
		{"shm", "100", 100}, {"tcp", "0", 0}, {"tcp", "131072", dataBytes}, {"shm", "131072", dataBytes},
	} {
		t.Run(it.transport+it.limit, func(t *testing.T) {
			use(t, it.transport)
			testkit.Setenv(t, "HCCL_EAGER_LIMIT", it.limit)
			w := newWorld(t, 2)
			long, short := pinned(letter(1, it.bytes+1)), pinned(letter(2, it.bytes))
			c := w.comms[0]
			first := starts(t, c, tagged(coll.Send, long, 1, 1))
			ended(t, starts(t, c, tagged(coll.Send, short, 1, 2)))
			if first.Err() != errInProgress {
				t.Errorf("%d bytes left without their receive: %v", len(long), first.Err())
			}
			ended(t, starts(t, w.comms[1], tagged(coll.Recv, pinned(make([]byte, it.bytes+1)), 0, 1)))
			ended(t, first)
			ended(t, starts(t, w.comms[1], tagged(coll.Recv, pinned(make([]byte, it.bytes)), 0, 2)))
			w.destroy()
		})
	}
}
