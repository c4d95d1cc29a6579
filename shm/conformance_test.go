package shm

import (
	"testing"

	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/porttest"
)

func TestPortsConform(t *testing.T) {
	porttest.Conformance(t, func(t *testing.T, n int) porttest.Fixture {
		segs := host(t, n, 4)
		t.Cleanup(func() { leave(segs) })
		f := porttest.Fixture{MaxSlice: 1 << 20}
		for _, s := range segs {
			f.Ports = append(f.Ports, proto.Ports(s.Ports()))
		}
		return f
	})
}

// A mirror is one rank's own: its sleepers are woken from inside the process.
func TestMirrorRings(t *testing.T) {
	open(t)
	s, err := Mirror(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := TakeBell()
	defer b.Drop()
	b.Prepare()
	if !b.Arm(s) {
		t.Fatal("no room for a bell")
	}
	s.MirrorState(0, Left)
	s.Raise(1, WhyLeft)
	if !b.Sleep(bellLimit) || s.Why() != WhyLeft || s.State(0) != Left {
		t.Error("the ring was lost")
	}
	b.Disarm(s)
}
