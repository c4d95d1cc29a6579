package path_test

import (
	"testing"

	"hccl.dev/hccl/graph/path"
)

func BenchmarkNew(b *testing.B) {
	for _, name := range []string{"h100-nvswitch-8nic", "l20-broadcom-two-levels", "b200-vm-unequal-nics"} {
		b.Run(name, func(b *testing.B) {
			g := read(b, machines+"/"+name+".xml")
			for b.Loop() {
				path.New(g)
			}
		})
	}
}
