package porttest

import (
	"testing"

	"hccl.dev/hccl/proto"
)

func TestMemoryPortsConform(t *testing.T) {
	for _, slots := range []int{proto.MinSlots, 16} {
		Conformance(t, func(t *testing.T, n int) Fixture {
			net := NewNet(n, slots)
			f := Fixture{MaxSlice: 70000}
			for r := range n {
				f.Ports = append(f.Ports, net.Ports(r))
			}
			return f
		})
	}
}
