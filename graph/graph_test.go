package graph

import (
	"testing"
	"time"

	"hccl.dev/hccl/internal/coll"
)

func TestTime(t *testing.T) {
	l := Link{Latency: time.Microsecond, Bandwidth: 1e9} // a byte takes a nanosecond
	for _, c := range []struct {
		f     coll.Func
		n     int
		bytes uint64
		want  time.Duration
	}{
		{coll.AllReduce, 4, 1000, 2*time.Microsecond + 1500},
		{coll.Broadcast, 4, 1000, time.Microsecond + 1000},
		{coll.AllGather, 4, 1000, time.Microsecond + 3000},
		{coll.Send, 2, 0, time.Microsecond},
		{coll.AllReduce, 1, 1000, 1000},
	} {
		if got := Time(c.f, c.n, c.bytes, l); got != c.want {
			t.Errorf("%v of %d bytes over %d ranks: %v, want %v", c.f, c.bytes, c.n, got, c.want)
		}
	}
}

func TestTimeGrows(t *testing.T) {
	for f := range coll.NumFuncs {
		for n := 2; n < 33; n++ {
			if Time(f, n, 1<<20, SharedMemory) <= Time(f, n, 1<<10, SharedMemory) {
				t.Errorf("%v over %d ranks: more bytes take no more time", f, n)
			}
			if Time(f, n, 1<<20, LoopbackTCP) <= Time(f, n, 1<<20, SharedMemory) {
				t.Errorf("%v over %d ranks: TCP is no slower than shared memory", f, n)
			}
		}
	}
}
