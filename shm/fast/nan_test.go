package fast

import (
	"encoding/binary"
	"math"
	"testing"
	"unsafe"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/internal/coll"
)

// TestNaNIsTheKernels: a sum that is done in line leaves the NaN that the kernels leave, so that the bits of a result do not depend on
// its size.
func TestNaNIsTheKernels(t *testing.T) {
	odd := math.Float32frombits(0xffc12345) // a negative NaN with a payload
	want := kernelSum(t, odd, 1)
	if got := mailSum(t, odd, 1); got != want {
		t.Errorf("by mail %#x, by the kernels %#x", got, want)
	}
}

func mailSum(t *testing.T, a, b float32) uint32 {
	hs := ranks(t, 2)
	send, recv := [][]float32{{a}, {b}}, [][]float32{{0}, {0}}
	for r, h := range hs {
		h.Lock()
		op := Op{Func: coll.AllReduce, Type: coll.Float32, Red: coll.Sum, Count: 1, Send: address(send[r]), Recv: address(recv[r])}
		if _, err := h.Post(&op); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range hs {
		if got := h.Poll(); got != Done {
			t.Fatalf("poll: %v", got)
		}
		h.Unlock()
	}
	return math.Float32bits(recv[0][0])
}

func kernelSum(t *testing.T, a, b float32) uint32 {
	src, dst := floats(a, b), make([]byte, 4)
	f32 := coll.Float32
	c := device.Cmd{Op: device.Reduce, Red: coll.Sum, SrcType: f32, Acc: f32, DstType: f32, NSrc: 2, NDst: 1, Scaled: -1, N: 1}
	c.Src[0], c.Src[1], c.Dst[0] = device.BytesPtr(src), device.BytesPtr(src[4:]), device.BytesPtr(dst)
	if _, err := (host.Queue{}).Submit([]device.Cmd{c}); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint32(dst)
}

func floats(v ...float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v)) }
