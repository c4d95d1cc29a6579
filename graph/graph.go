// Package graph is topology as pure data: values in, values out, no I/O and no knowledge of transports or communicators.
//
// This package itself holds the cost model: what an operation over links of one kind takes, as latency plus size over bandwidth (the
// alpha-beta model of R. W. Hockney, "The communication challenge for MPP", 1994). Package core asks it for
// ncclGroupSimulateEnd. Below it: topo has the machine and its graph, ncclxml reads it from NCCL's files, path finds the ways between
// devices.
package graph

import (
	"time"

	"hccl.dev/hccl/internal/coll"
)

// Link is what every pair of ranks is joined by.
type Link struct {
	Latency   time.Duration // of one step
	Bandwidth float64       // bytes a second that one rank takes in
}

// Links of one host, as measured on a two-core virtual machine. They are rules of thumb, not a measurement of the machine at hand.
var (
	SharedMemory = Link{Latency: time.Microsecond, Bandwidth: 8e9}
	LoopbackTCP  = Link{Latency: 30 * time.Microsecond, Bandwidth: 1.5e9}
)

// Time is what an operation of n ranks takes over links l. bytes is the size of the vector of an all-reduce, reduce or broadcast or
// of a message, and of one rank's share elsewhere.
//
//	all-reduce, reduce   2 steps, 2(n-1)/n of the vector through each rank
//	broadcast, message   1 step, all of it
//	the others           1 step, n-1 shares
func Time(f coll.Func, n int, bytes uint64, l Link) time.Duration {
	if n <= 1 {
		return time.Duration(float64(bytes) / l.Bandwidth * float64(time.Second))
	}
	steps, share := 1, float64(n-1)
	switch f {
	case coll.AllReduce, coll.Reduce:
		steps, share = 2, 2*float64(n-1)/float64(n)
	case coll.Broadcast, coll.Send, coll.Recv:
		share = 1
	}
	return time.Duration(steps)*l.Latency + time.Duration(float64(bytes)*share/l.Bandwidth*float64(time.Second))
}
