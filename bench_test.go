package hccl_test

import (
	"context"
	"fmt"
	"testing"

	"hccl.dev/hccl"
)

// One operation of n goroutine ranks: without a limit, and with a context that could end.
func BenchmarkAllReduce(b *testing.B) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	for _, n := range []int{2, 4} {
		for _, count := range []int{2, 16 << 10} {
			for name, ctx := range map[string]context.Context{"unlimited": background, "limited": ctx} {
				b.Run(fmt.Sprintf("%d/%dB/%s", n, 4*count, name), func(b *testing.B) { benchSum(b, ctx, n, count) })
			}
		}
	}
}

func benchSum(b *testing.B, ctx context.Context, n, count int) {
	comms := world(b, n)
	b.SetBytes(int64(4 * count))
	b.ReportAllocs()
	b.ResetTimer()
	must(b, comms, func(c *hccl.Comm) error {
		buf := make([]float32, count)
		for range b.N {
			if err := hccl.AllReduce(ctx, c, buf, buf, hccl.Sum); err != nil {
				return err
			}
		}
		return nil
	})
}
