package host

import (
	"fmt"
	"runtime"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// benchmark runs c on aligned memory. SetBytes counts the bytes of one vector, as a caller sees it, not the traffic.
func benchmark(b *testing.B, c device.Cmd, bytes uint64) {
	var bufs [device.MaxSrc + 2]buffer
	for i := range bufs[:c.NSrc+2] {
		bufs[i] = newBuffer(bytes, 0)
		spread(bufs[i].data, []byte{0, 0, 0, 0x3c, 0x3f, 0x3c, 0x3e, 0x3c})
	}
	c.Dst = [2]device.Ptr{bufs[0].ptr(), bufs[1].ptr()}
	for s := range c.NSrc {
		c.Src[s] = bufs[2+s].ptr()
	}
	c.N = bytes / c.SrcType.Size()
	cmds := []device.Cmd{c}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Queue{}).Submit(cmds); err != nil {
			b.Fatal(err)
		}
	}
	runtime.KeepAlive(&bufs)
}

func sizeName(bytes uint64) string {
	if bytes >= 1<<20 {
		return fmt.Sprintf("%dMiB", bytes>>20)
	}
	if bytes >= 1<<10 {
		return fmt.Sprintf("%dKiB", bytes>>10)
	}
	return fmt.Sprintf("%dB", bytes)
}

func BenchmarkCopy(b *testing.B) {
	for _, stream := range []bool{false, true} {
		for _, bytes := range []uint64{8, 512, 4 << 10, 64 << 10, 16 << 20} {
			c := device.Cmd{Op: device.Copy, SrcType: coll.Int8, NSrc: 1, NDst: 1, Scaled: -1, Stream: stream}
			b.Run(fmt.Sprintf("stream=%v/%s", stream, sizeName(bytes)), func(b *testing.B) { benchmark(b, c, bytes) })
		}
	}
}

func BenchmarkReduce(b *testing.B) {
	for _, kind := range []struct {
		t      coll.DataType
		red    coll.RedOp
		k      int
		dsts   uint8
		stream bool
	}{
		{coll.Float32, coll.Sum, 2, 1, false}, {coll.Float32, coll.Sum, 2, 2, false}, {coll.Float32, coll.Sum, 2, 1, true},
		{coll.Float32, coll.Sum, 4, 1, false}, {coll.Float32, coll.Sum, 8, 1, false}, {coll.Float32, coll.Max, 2, 1, false},
		{coll.Float64, coll.Sum, 2, 1, false}, {coll.Int32, coll.Sum, 2, 1, false}, {coll.Int8, coll.Sum, 2, 1, false},
		{coll.Bfloat16, coll.Sum, 2, 1, false}, {coll.Bfloat16, coll.Sum, 4, 1, false}, {coll.Float16, coll.Sum, 2, 1, false},
		{coll.Float8e4m3, coll.Sum, 2, 1, false}, {coll.Int32, coll.Avg, 2, 1, false}, {coll.Int64, coll.Avg, 2, 1, false},
		{coll.Float32, coll.Avg, 2, 1, false},
	} {
		for _, bytes := range []uint64{8, 8 << 10, 64 << 10, 16 << 20} {
			c := reduceCmd(kind.t, kind.red, kind.k)
			c.NSrc, c.NDst, c.Stream = uint8(kind.k), kind.dsts, kind.stream
			b.Run(fmt.Sprintf("%v/%v/k=%d/dst=%d/stream=%v/%s", kind.t, kind.red, kind.k, kind.dsts, kind.stream, sizeName(bytes)),
				func(b *testing.B) { benchmark(b, c, bytes) })
		}
	}
}
