package host

import (
	"bytes"
	"math"
	"testing"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
)

// sharedSizes lie around a line, and around how far ahead lines are asked for.
var sharedSizes = []int{0, 1, 63, 64, 65, 1023, 1087, 1088, 1089, 1151, 3000}

func TestCopyShared(t *testing.T) {
	src := make([]byte, 3100)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	eachLevel(func() {
		for _, n := range sharedSizes {
			for off := range 70 {
				dst := bytes.Repeat([]byte{0xee}, n+200)
				c := device.Cmd{Op: device.Copy, SrcType: coll.Int8, Scaled: -1, N: uint64(n), Shared: true}
				submit(t, c, dst[off:off+n+1], nil, src[off:])
				want := bytes.Repeat([]byte{0xee}, n+200)
				copy(want[off:], src[off:off+n])
				if !bytes.Equal(dst, want) {
					t.Fatalf("%s: %d bytes to offset %d arrive wrong", Level(), n, off)
				}
			}
		}
	})
}

func TestSumToTwoShared(t *testing.T) {
	x, y := make([]byte, 4096), make([]byte, 4096)
	for i := range 1024 {
		store(coll.Float32, x, i, uint64(math.Float32bits(float32(i))))
		store(coll.Float32, y, i, uint64(math.Float32bits(float32(3*i+1))))
	}
	eachLevel(func() {
		for _, stream := range []bool{false, true} {
			for _, n := range sharedSizes {
				n = min(n/3, 1000)
				out, out2 := make([]byte, 4096), make([]byte, 4096)
				c := device.Cmd{Op: device.Reduce, SrcType: coll.Float32, Acc: coll.Float32, DstType: coll.Float32, Scaled: -1, Stream: stream,
					Shared: true, N: uint64(n), NSrc: 2, NDst: 2}
				c.Dst = [2]device.Ptr{device.BytesPtr(out), device.BytesPtr(out2)}
				c.Src[0], c.Src[1] = device.BytesPtr(x), device.BytesPtr(y)
				if _, err := (Queue{}).Submit([]device.Cmd{c}); err != nil {
					t.Fatal(err)
				}
				for i := range 1024 {
					want := uint64(0)
					if i < n {
						want = uint64(math.Float32bits(float32(4*i + 1)))
					}
					if a, b := load(coll.Float32, out, i), load(coll.Float32, out2, i); a != want || b != want {
						t.Fatalf("%s, %d sums, stream %v: element %d is %#x and %#x, want %#x", Level(), n, stream, i, a, b, want)
					}
				}
			}
		}
	})
}
