package core

import (
	"net/netip"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/internal/log"
)

// Where nothing moves on any rail to a rank, its keeper lays one more beside them, by one way after the other. The kernel rides an outage
// out by itself, but not what a new connection alone gets over: a router that has forgotten the old one, a wire by which large packets
// are lost, an interface that was replaced. Once the new rail moves the others are suspected, and given up if they do not (net/tcp).

const (
	relieveAfter = 700 * time.Millisecond
	smallSegment = 1220 // bytes in packets that pass wherever IPv6 does
)

// relief is the one more rail to a rank.
type relief struct {
	attempt *boot.Attempt // under way; nil: none
	way     way
	rail    int
	began   time.Time
	tries   int
}

// way is from an interface of this host to an address of another.
type way struct {
	by boot.Interface
	to netip.AddrPort
}

func (a *relief) close() {
	if a.attempt != nil {
		a.attempt.Close()
		a.attempt = nil
	}
}

// relieve goes on with what is laid beside rails that stand still, and reports whether anything is.
func (k *railKeeper) relieve(now time.Time) (busy bool) {
	for r := range k.aid {
		a := &k.aid[r]
		switch {
		case k.c.net == nil || r == k.c.rank || !k.c.remote(r):
		case k.c.net.Stuck(r) < relieveAfter || k.c.farewell(r) != "":
			a.close()
		case a.attempt == nil && now.Sub(a.began) < relieveAfter:
		default:
			busy = k.lend(r, a, now) || busy
		}
	}
	return busy
}

// lend goes on with the rail to rank r, and reports whether it is being laid.
func (k *railKeeper) lend(r int, a *relief, now time.Time) bool {
	if a.attempt == nil {
		if a.rail = k.c.net.Spare(r); a.rail < 0 {
			return false
		}
		ways := k.ways(r)
		a.began, a.way = now, ways[a.tries%len(ways)]
		if a.tries/len(ways)%2 == 1 {
			a.way.by.Segment = smallSegment
		}
		a.tries++
		a.attempt = boot.Try(a.way.by, a.way.to, k.c.peers[r].Door, k.c.secret[:], k.c.rank, uint8(purposeRail+a.rail))
	}
	fd, err := a.attempt.Turn()
	if fd < 0 && err == nil && now.Sub(a.began) < attemptTime {
		return true
	}
	a.close()
	if fd >= 0 {
		k.sayRelief(r, a)
		a.began = now // it has its time to move
		k.add(r, a.rail, fd)
	}
	return false
}

func (k *railKeeper) sayRelief(r int, a *relief) {
	stuck := k.c.net.Stuck(r).Seconds()
	if a.way.by.Segment == 0 {
		k.c.log.Info(log.Net, "communicator %s: nothing has moved to rank %d for %.1f s; rail %d is laid beside the others, by %s to %v",
			k.c.label(), r, stuck, a.rail, a.way.by.Name, a.way.to.Addr())
		return
	}
	k.c.log.Warn("communicator %s: nothing has moved to rank %d for %.1f s though it can be connected to: large packets seem to be lost "+
		"between %s and %v, compare the MTU of all interfaces and switches on the way; rail %d sends small ones", k.c.label(), r, stuck,
		a.way.by.Name, a.way.to.Addr(), a.rail)
}

// ways are those to rank r: first the one of its first connection, then each interface with each address that it may lead to.
func (k *railKeeper) ways(r int) []way {
	first, there := k.c.first[r], k.c.peers[r].Addrs
	list := []way{{to: netip.AddrPortFrom(first[1], there[0].Port())}}
	for _, n := range k.svc.Interfaces() {
		if n.Addr == first[0] {
			list[0].by = n
		}
		for _, to := range k.c.peers[r].Rails {
			other := n.Addr != first[0] || to.Addr() != first[1]
			if other && n.Addr != to.Addr() && n.Addr.Is4() == to.Addr().Is4() {
				list = append(list, way{n, to})
			}
		}
	}
	return list
}
