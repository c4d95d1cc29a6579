package core

import (
	"slices"
	"sync"
	"testing"
	"time"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/proto/wire"
)

// Communicators that are made, used and ended again and again leave nothing behind, however they end.
func TestCycles(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 8
	}
	overEach(t, func(t *testing.T) {
		newWorld(t, 3).destroy()
		before := testkit.Count()
		for k := range rounds {
			w := newWorld(t, 3)
			w.must(w.each(func(r int) error { return sum(w.comms[r], []uint64{10, 70000}[k%2]) }))
			if k%3 == 0 {
				w.abort()
			} else {
				w.destroy()
			}
		}
		if err := before.Balanced(5 * time.Second); err != nil {
			t.Error(err)
		}
	})
}

// Many threads ask, abort and destroy the same communicators while others use them: each call returns, with an answer or an error.
func TestEndsBesideUse(t *testing.T) {
	overEach(t, func(t *testing.T) {
		for k := range 6 {
			w := newWorld(t, 2)
			var others sync.WaitGroup
			for _, c := range w.comms {
				others.Go(func() {
					for k := range 50 {
						_ = c.AsyncError()
						if k%10 == 0 { // few enough to go without a receiver
							m := letterCall(coll.Send, make([]byte, 10), 1-c.rank)
							_ = do(c, &m)
						}
					}
				})
			}
			w.each(func(r int) error {
				for range 30 {
					if err := sum(w.comms[r], 100); err != nil {
						return err
					}
				}
				return nil
			})
			w.each(func(r int) error {
				if (k+r)%2 == 0 {
					return w.comms[r].Abort()
				}
				return w.comms[r].Destroy()
			})
			testkit.Within(t, patience, "the other threads", others.Wait)
			w.abort()
		}
	})
}

// Ranks that hold other settings than rank 0 are named; rank 0's values count, and shared memory only where all want it.
func TestAgree(t *testing.T) {
	setting := func(algo, channels string) []wire.Setting {
		return []wire.Setting{{Name: "NCCL_ALGO", Value: algo}, {Name: "NCCL_MIN_NCHANNELS", Value: channels}}
	}
	peers := []wire.Peer{{Settings: setting("ring", "2")}, {Settings: setting("ring", "3")},
		{Settings: append(setting("ring", "3"), wire.Setting{Name: shmDisable, Value: "1"})}}
	texts := differences(peers)
	want := `NCCL_MIN_NCHANNELS is "2" on rank 0 and "3" on rank 1, 2: rank 0's value is used by all; set it alike on all ranks`
	if len(texts) != 1 || texts[0] != want {
		t.Errorf("%q", texts)
	}
	a := agree(1, peers)
	if a.share || a.setting.MinChannels != 2 {
		t.Errorf("%+v", a)
	}
	if a = agree(1, peers[:2]); !a.share {
		t.Error("no rank forbids it, and they do not share")
	}
}

// Ranks share memory with those of their own host and network namespace; one that cannot share is alone.
func TestGroupsOfHosts(t *testing.T) {
	at := func(host string, netNS uint64) wire.Peer {
		return wire.Peer{BootID: host, NetNS: netNS, CanShare: true}
	}
	alone := wire.Peer{BootID: "a", NetNS: 1}
	c := &Comm{peers: []wire.Peer{at("a", 1), at("b", 1), at("a", 1), alone, at("b", 2), at("b", 1), alone}}
	want := [][]int{{0, 2}, {1, 5}, {3}, {4}, {6}}
	if got := c.groups(); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
	if c.onHost() != 4 || !several(want) || several(want[2:]) || !slices.Equal(group(want, 5), want[1]) {
		t.Errorf("%d ranks on the host, %v", c.onHost(), group(want, 5))
	}
}
