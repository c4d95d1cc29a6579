package staging

import (
	"fmt"
	"testing"

	"hccl.dev/hccl/internal/testkit"
)

// BenchmarkTurn puts the oldest of 32 buffers, as many as a flow has slices under way, takes a new one and touches its pages; beside it
// C's malloc and free do the same.
func BenchmarkTurn(b *testing.B) {
	const window = 32
	for _, size := range []int{4 << 10, 64 << 10, 128 << 10, 1 << 20, 4 << 20} {
		for name, o := range map[string]Options{"pool": {}, "pool without huge pages": {NoHuge: true}} {
			b.Run(fmt.Sprintf("%d KiB/%s", size>>10, name), func(b *testing.B) {
				p := &Pool{opts: o}
				b.ReportAllocs()
				p.Join()
				defer p.Leave()
				var held [window]*Buf
				turn := func(at **Buf) {
					if *at != nil {
						(*at).Put()
					}
					*at = p.Get(uint64(size), false)
					for page := 0; page < size; page += 4096 {
						(*at).Bytes()[page] = 1
					}
				}
				for k := range window + 1 {
					turn(&held[k%window])
				}
				for k := 0; b.Loop(); k++ {
					turn(&held[k%window])
				}
				putAll(held[:])
			})
		}
		b.Run(fmt.Sprintf("%d KiB/malloc", size>>10), func(b *testing.B) {
			testkit.Malloc(size, window, window)
			b.ResetTimer()
			testkit.Malloc(size, window, b.N)
		})
	}
}

// BenchmarkManyThreads is a buffer taken and put at once by as many threads as there are processors.
func BenchmarkManyThreads(b *testing.B) {
	var p Pool
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p.Get(64<<10, false).Put()
		}
	})
}
