package core

import (
	"testing"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/porttest"
)

// The ports of ranks of two hosts, some of whose ends lie in shared memory and some on a connection, behave as those of one transport.
func TestMixedPortsConform(t *testing.T) {
	use(t, "mixed")
	porttest.Conformance(t, func(t *testing.T, n int) porttest.Fixture {
		w := newWorld(t, n)
		t.Cleanup(w.abort)
		f := porttest.Fixture{MaxSlice: tcp.MaxSlice, Poll: func() {
			for _, c := range w.comms {
				c.net.Poll()
			}
		}}
		for _, c := range w.comms {
			if n > 2 && c.rank != 1 && c.near == nil {
				t.Fatalf("rank %d of %d shares memory with no rank", c.rank, n)
			}
			f.Ports = append(f.Ports, proto.Ports(c.ports))
		}
		return f
	})
}

// A rank of a job over two hosts that is done with all keeps its neighbours' slices readable, as on one host.
func TestLeavingTwoHosts(t *testing.T) {
	use(t, "mixed")
	const n = 4
	w := newWorld(t, n)
	o := shape{fn: coll.Broadcast, typ: coll.Int32, n: n, count: 3000, root: 1, seed: 3}
	w.must(w.each(func(r int) error {
		p := o.part(r)
		if err := do(w.comms[r], &p.call); err != nil {
			return err
		}
		if r == o.root {
			return w.comms[r].Destroy()
		}
		return p.check()
	}))
	w.abort()
}
