package core

import (
	"testing"

	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/net/tcp"
)

// The product of NCCL's two settings counts, as far as there are numbers.
func TestHowManySockets(t *testing.T) {
	for want, v := range map[int]params.Values{
		0:              {},
		1:              {SocketThreads: 1, ThreadSockets: 1},
		3:              {SocketThreads: 3},
		6:              {SocketThreads: 3, ThreadSockets: 2},
		tcp.MaxSockets: {SocketThreads: 16, ThreadSockets: 64},
	} {
		if got := socketsOf(&v); got != want {
			t.Errorf("%d times %d sockets are %d, want %d", v.SocketThreads, v.ThreadSockets, got, want)
		}
	}
}
