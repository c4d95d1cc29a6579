package core

import (
	"fmt"
	"strings"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/graph/arrange"
	"hccl.dev/hccl/graph/cost"
	"hccl.dev/hccl/graph/ncclxml"
	"hccl.dev/hccl/graph/topo"
	"hccl.dev/hccl/proto/wire"
)

// How rings are laid through the hosts, between the first exchange and the connecting. Most communicators are through in no time: where
// no rank can describe its host, places decide, which all know already.
//
//	every rank has told       the checksum of its host's description, if it has one
//	the first rank of each    sends the description to all, log2(n) rounds                      learn
//	the solver                packs rings into the links of all hosts, sends them likewise      solve
//	every rank                counts anew what they put on the links, and goes by them

// solver is the rank that packs rings for all.
const solver = 0

// lay decides by which orders rings go, the same on all ranks. inbox may be nil for a rank that is alone.
func (c *Comm) lay(inbox *boot.Inbox, deadline time.Time) error {
	g := gathering{c, inbox, c.limit(deadline)}
	if err := g.learn(); err != nil {
		return err
	}
	all := c.agreed.arrange(c.peers)
	found := arrange.Result{}
	if all.Searches() {
		var err error
		if found, err = g.solve(all); err != nil {
			return err
		}
	} else {
		found = all.Near()
	}
	err := c.agreed.use(found)
	c.phases.end("rings")
	return err
}

// gathering is a rank of a communicator whose ranks know each other and are not connected yet.
type gathering struct {
	*Comm
	inbox *boot.Inbox
	lim   boot.Limit
}

func (g *gathering) gather(purpose uint8, mine []byte) ([][]byte, error) {
	at := func(r int) boot.Member { return boot.Member{Rank: r, Addrs: g.peers[r].Addrs, Key: g.peers[r].Door} }
	return boot.Gather(g.inbox, purpose, g.rank, g.n, at, mine, g.lim)
}

// mostDescribed bounds all descriptions together, which each rank holds for a moment: more than 2,000 hosts of which no two are alike.
const mostDescribed = 8 << 20

// learn has the ranks tell each other what their hosts look like: each host that is like no other once. A part of a communicator knows
// it from the whole.
func (g *gathering) learn() error {
	if g.n == 1 || g.agreed.hosts != nil || g.agreed.scope == cost.Nothing {
		return nil
	}
	senders, total := described(g.peers)
	switch {
	case len(senders) == 0:
		return nil
	case total > mostDescribed:
		if g.rank == speaker(g.peers) {
			g.log.Warn("topology: the descriptions of %d kinds of hosts have %d MiB, more than the %d MiB that are told: rings go by places; "+
				"leave NCCL_TOPO_FILE out, or give hosts that are alike one file", len(senders), total>>20, mostDescribed>>20)
		}
		return nil
	}
	var mine []byte
	if d := hostDescription(g.settings.TopoFile); senders[d.sum] == g.rank {
		mine = d.packed
	}
	blobs, err := g.gather(purposeHosts, mine)
	if err != nil {
		return err
	}
	g.agreed.hosts = map[[32]byte]*topo.Machine{}
	for sum, r := range senders {
		if g.agreed.hosts[sum], err = heard(blobs[r], sum); err != nil {
			return failf(RemoteError, "rank %d cannot read what rank %d tells of its host: %w; load the same library on all ranks (%s here)",
				g.rank, r, err, Library).of(r)
		}
	}
	return nil
}

// described are the first rank with each description, and how many bytes these have together.
func described(peers []wire.Peer) (senders map[[32]byte]int, total int) {
	senders = map[[32]byte]int{}
	for r := range peers {
		sum := peers[r].Described
		if _, known := senders[sum]; !known && sum != ([32]byte{}) {
			senders[sum] = r
			total += int(peers[r].Size)
		}
	}
	return senders, total
}

// mostHeard is how many machines are kept: a few kinds of hosts are usual.
const mostHeard = 64

// heard is the machine of a description. Communicators of a process have the same hosts again and again.
func heard(b []byte, sum [32]byte) (*topo.Machine, error) {
	machines.mu.Lock()
	m := machines.heard[sum]
	machines.mu.Unlock()
	if m != nil {
		return m, nil
	}
	m, err := unpack(b, sum)
	if err != nil {
		return nil, err
	}
	machines.mu.Lock()
	defer machines.mu.Unlock()
	if machines.heard == nil {
		machines.heard = map[[32]byte]*topo.Machine{}
	}
	if len(machines.heard) < mostHeard {
		machines.heard[sum] = m
	}
	return m, nil
}

func unpack(b []byte, sum [32]byte) (*topo.Machine, error) {
	text, err := wire.UnpackText(b, sum)
	if err != nil {
		return nil, err
	}
	m, _, err := ncclxml.Read(strings.NewReader(text))
	return m, err
}

// solve has one rank pack rings, and all others verify and take them.
func (g *gathering) solve(all *arrange.Arrangement) (found arrange.Result, err error) {
	var mine []byte
	if g.rank == solver {
		mine = solution(all)
	}
	blobs, err := g.gather(purposeRings, mine)
	if err != nil {
		return found, err
	}
	var s wire.Solution
	if err = s.Decode(blobs[solver]); err == nil {
		found, err = all.Take(solutionOf(&s))
	}
	if err != nil {
		return found, failf(RemoteError, "rank %d does not take the rings that rank %d has found for all: %w; load the same library on all "+
			"ranks (%s here), or go without them by HCCL_TOPO_SCOPE=none", g.rank, solver, err, Library).of(solver)
	}
	found.By += fmt.Sprintf("; found by rank %d in %.1f ms", solver, float64(s.Micros)/1e3)
	return found, nil
}
