package core

import (
	"time"

	"hccl.dev/hccl/internal/coll"
)

// Estimate is the time that a call will take, for ncclGroupSimulateEnd: latency plus bytes over bandwidth, with constants of shared
// memory or loopback TCP on a present-day server. It is no measurement of this machine.
func (c *Comm) Estimate(call *Call) time.Duration {
	latency, bandwidth := 1e-6, 8e9 // seconds a step, bytes a second
	if c.net != nil {
		latency, bandwidth = 30e-6, 1.5e9
	}
	steps, share := 1.0, 1.0
	bytes := float64(call.Count * call.Type.Size())
	n := float64(c.n)
	switch call.Func {
	case coll.AllReduce, coll.Reduce:
		steps, share = 2, 2*(n-1)/n
	case coll.AllGather, coll.ReduceScatter, coll.AlltoAll, coll.Gather, coll.Scatter:
		share = n - 1
	}
	return time.Duration((latency*steps + bytes*share/bandwidth) * 1e9)
}
