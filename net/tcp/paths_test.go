package tcp

import (
	"testing"
	"time"
)

// Rails of one path are judged together: where one stands still and none moves, all are suspected at once, and given up at once; where
// another one of them moves, or nothing moves anywhere, the others keep their place.
func TestRailsOfAPath(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	var (
		idle  = pulse{moves: true, since: now}
		stuck = pulse{since: ago(suspectAfter), last: ago(suspectAfter)}
		long  = pulse{since: ago(deadAfter), last: ago(deadAfter)}
		moves = pulse{moves: true, since: now, last: now}
		moved = pulse{moves: true, since: now, last: ago(suspectAfter / 2)}
	)
	const l, s, d = railLive, railSuspect, railDead
	for name, c := range map[string]struct {
		first, second [2]pulse // of the sockets of two paths
		moving        time.Duration
		want          [4]int32
	}{
		"a path stands still":           {[2]pulse{stuck, idle}, [2]pulse{moves, idle}, deadAfter, [4]int32{s, s, l, l}},
		"for long":                      {[2]pulse{long, idle}, [2]pulse{moves, idle}, deadAfter, [4]int32{d, d, l, l}},
		"for long, as all did":          {[2]pulse{long, idle}, [2]pulse{moves, idle}, deadAfter / 2, [4]int32{s, s, l, l}},
		"for long, others are new":      {[2]pulse{long, idle}, [2]pulse{idle, idle}, deadAfter, [4]int32{s, s, l, l}},
		"one socket does":               {[2]pulse{stuck, moves}, [2]pulse{idle, idle}, deadAfter, [4]int32{s, l, l, l}},
		"one does, another moved":       {[2]pulse{stuck, moved}, [2]pulse{idle, idle}, deadAfter, [4]int32{s, l, l, l}},
		"one does for long, and moving": {[2]pulse{long, moves}, [2]pulse{idle, idle}, deadAfter, [4]int32{d, l, l, l}},
		"both paths do":                 {[2]pulse{stuck, idle}, [2]pulse{idle, long}, deadAfter, [4]int32{l, l, l, l}},
		"nothing does":                  {[2]pulse{idle, moves}, [2]pulse{moved, idle}, deadAfter, [4]int32{l, l, l, l}},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := []*node{newNode(0, 2), newNode(1, 2)}
			for _, n := range nodes {
				t.Cleanup(func() { n.Close(0) })
			}
			rails := [4]int{Rail(0, 0), Rail(0, 1), Rail(1, 0), Rail(1, 1)}
			for _, rail := range rails {
				lay(t, nodes, 0, 1, rail, pair)
			}
			link := nodes[0].links[1]
			link.moving = ago(c.moving)
			for k, q := range append(c.first[:], c.second[:]...) {
				link.rails[rails[k]].Load().pulse = q
			}
			if c.first[0].moves { // it is used again
				link.rails[Rail(0, 0)].Load().state.Store(railSuspect)
			}
			link.weigh(now)
			var got [4]int32
			for k := range got {
				got[k] = link.rails[rails[k]].Load().state.Load()
			}
			if got != c.want {
				t.Errorf("states %v, want %v", got, c.want)
			}
		})
	}
}

// A number stands for one socket of one path, and the first sockets have the paths' numbers.
func TestNumbersOfRails(t *testing.T) {
	had := map[int]bool{}
	for path := range MaxPaths {
		for socket := range MaxSockets {
			rail := Rail(path, socket)
			if p, s := Place(rail); p != path || s != socket || had[rail] || rail < 0 || rail >= MaxRails {
				t.Errorf("socket %d of path %d is rail %d, which is socket %d of path %d", socket, path, rail, s, p)
			}
			had[rail] = true
		}
		if Rail(path, 0) != path {
			t.Errorf("path %d begins with rail %d", path, Rail(path, 0))
		}
	}
}
