package tcp

import (
	"testing"

	"hccl.dev/hccl/proto"
)

// loaded are two nodes without a rail, on the first of which slices of some sizes wait on as many channels.
func loaded(t *testing.T, largeFirst bool, sizes ...int) []*node {
	t.Helper()
	nodes := []*node{newNode(0, 2), newNode(1, 2)}
	for _, n := range nodes {
		t.Cleanup(func() { n.Close(0) })
	}
	nodes[0].net.Tune(Options{LargeFirst: largeFirst})
	for c, size := range sizes {
		out := outOf(t, nodes[0], proto.Pair, c, 1)
		for k := 0; put(t, out, content(c, k, size)); k++ {
		}
	}
	return nodes
}

// picked takes slices as a batch would, and returns whose they are by channel.
func picked(t *testing.T, n *node, times int) (channels []int) {
	t.Helper()
	l := n.links[1]
	l.tx.wait()
	l.collect()
	for range times {
		p, kind, channel, ok := l.pick()
		if !ok {
			t.Fatalf("nothing waits after %d slices", len(channels))
		}
		s, _, ok := p.out.find(kind, channel).take(0)
		if !ok {
			t.Fatalf("channel %d has no slice", channel)
		}
		s.b.Put()
		channels = append(channels, channel)
	}
	for !l.tx.pass() {
	}
	return channels
}

func count(list []int, channel int) (n int) {
	for _, c := range list {
		if c == channel {
			n++
		}
	}
	return n
}

// By turns each flow has its share; by large-first the one with the most bytes has all but the slices that go in turn, and the smallest
// one waits for no more than fairShare slices of each.
func TestPolicies(t *testing.T) {
	sizes := []int{100, 200, 5000, 300}
	const large, times = 2, 32
	if got := picked(t, loaded(t, false, sizes...)[0], times); count(got, large) != times/len(sizes) {
		t.Errorf("fair: %v", got)
	}
	got := picked(t, loaded(t, true, sizes...)[0], times)
	if n := count(got, large); n < times*(fairShare-1)/fairShare {
		t.Errorf("large-first: %d of %d slices are of the largest flow: %v", n, times, got)
	}
	for c := range sizes {
		for from := 0; from+fairShare*len(sizes) <= times; from++ {
			if c != large && count(got[from:from+fairShare*len(sizes)], c) == 0 {
				t.Fatalf("large-first: channel %d has none from slice %d on: %v", c, from, got)
			}
		}
	}
}

// A control message goes before all slices that wait, whatever the policy.
func TestControlGoesFirst(t *testing.T) {
	for _, largeFirst := range []bool{false, true} {
		nodes := loaded(t, largeFirst, 5000, 100)
		if err := nodes[0].Control(1, []byte("first")); err != nil {
			t.Fatal(err)
		}
		l := nodes[0].links[1]
		l.tx.wait() // nothing is sent before the look
		lay(t, nodes, 0, 1, 0, loopback)
		l.collect()
		c := nodes[0].rail(1, 0)
		if !c.fill(batchBytes) || len(c.send.control) == 0 || c.send.iov[0].Base != &c.send.control[0] {
			t.Error("a batch does not begin with the control message")
		}
		for !l.tx.pass() {
			l.sendSome()
		}
		nodes[1].until(t, "message", func() bool { return len(nodes[1].heard(0)) == 1 })
	}
}
