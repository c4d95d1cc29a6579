package core

import (
	"testing"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/internal/testkit/netns"
)

// How many sockets a path has follows what the network does with one connection.

// Where each connection has a bound of its own there come to be more of them, and they ride out an outage of their path together.
func TestSocketsWhereEachIsBounded(t *testing.T) {
	l := hosts(t, 2)
	rail := l.Rail()
	l.ShapeFlows(rail, 60, 1000)
	ranks := onHosts(t, l, []int{0, 1}, 1<<20, "HCCL_PORT_RANGE="+netns.Ports)
	testkit.Eventually(t, 2*patience, "a third connection", func() bool {
		tell(ranks, 1)
		finish(t, ranks, 0, 1)
		return len(established(t, l, 0)) >= 3
	})
	const times = 10
	tell(ranks, times)
	reads(t, ranks[0], 0, 2)
	l.Link(1, rail, false)
	lost := l.Sent(0, netns.Device(rail))
	testkit.Eventually(t, patience, "something that is lost", func() bool { return l.Sent(0, netns.Device(rail)) > lost })
	l.Link(1, rail, true)
	finish(t, ranks, 2, times)
	disperse(t, ranks)
}

// Where the card is what is slow a second one is tried, and let go of.
func TestSocketsWhereTheCardIsBounded(t *testing.T) {
	l := hosts(t, 2)
	rail := l.Rail()
	l.ShapeFlows(rail, 100, 60)
	ranks := onHosts(t, l, []int{0, 1}, 1<<20, "HCCL_PORT_RANGE="+netns.Ports)
	for _, want := range []int{2, 1} {
		testkit.Eventually(t, patience, "the right number of connections", func() bool {
			tell(ranks, 1)
			finish(t, ranks, 0, 1)
			return len(established(t, l, 0)) == want
		})
	}
	disperse(t, ranks)
}
