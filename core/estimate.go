package core

import (
	"time"

	"hccl.dev/hccl/graph"
)

// Estimate is the time that a call will take by the cost model of graph, for ncclGroupSimulateEnd.
func (c *Comm) Estimate(call *Call) time.Duration {
	l := graph.SharedMemory
	if c.net != nil {
		l = graph.LoopbackTCP
	}
	return graph.Time(call.Func, c.n, call.Count*call.Type.Size(), l)
}
