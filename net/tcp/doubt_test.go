package tcp

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"hccl.dev/hccl/proto"
)

// Ends that give up different rails after an outage take each other's last: neither takes the other's process for ended, and both ask for a
// new connection, by which all that was lost goes.
func TestEndsGiveUpDifferentRails(t *testing.T) {
	nodes := railed(t, 2, 2, loopback)
	var asked [2]atomic.Int32
	for a, d := range nodes {
		d.links[1-a].onNeed = func() { asked[a].Add(1) }
		d.Take() // neither hears of what the other gives up before it gives up its own
	}
	out, in := outOf(t, nodes[0], proto.Pair, 0, 1), inOf(t, nodes[1], proto.Pair, 0, 0)
	for a, d := range nodes {
		l, c := d.links[1-a], d.rail(1-a, a)
		now := time.Now()
		l.moving, c.pulse = now.Add(-deadAfter), pulse{since: now.Add(-deadAfter)}
		d.rail(1-a, 1-a).pulse = pulse{moves: true, since: now, last: now}
		if l.weigh(now); c.state.Load() != railDead {
			t.Fatalf("rank %d does not give up rail %d", a, a)
		}
	}
	for a, d := range nodes {
		d.Give()
		d.until(t, "end of all rails", func() bool { return !d.links[1-a].Open() })
		if err := d.links[1-a].Lost(); err != nil {
			t.Fatalf("rank %d: %v", a, err)
		}
		if asked[a].Load() == 0 {
			t.Errorf("rank %d asks for no connection", a)
		}
	}
	put(t, out, content(0, 0, 5000))
	lay(t, nodes, 0, 1, 0, loopback)
	nodes[1].until(t, "slice", func() bool {
		b, ok := get(t, in)
		return ok && bytes.Equal(b, content(0, 0, 5000))
	})
}
