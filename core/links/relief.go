package links

import (
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/internal/log"
)

// Where nothing moves on any rail to a process, one more is laid beside them, by one way after the other. The kernel rides an outage
// out by itself, but not what a new connection alone gets over: a router that has forgotten the old one, a wire by which large packets
// are lost, an interface that was replaced. Once the new rail moves the others are suspected, and given up if they do not (net/tcp).

const (
	relieveAfter = 700 * time.Millisecond
	movedTime    = 4 * time.Second // behind the last attempt: what was laid carries more than its first packets
	mostRefusals = 2               // by a way that has carried connections: nobody listens any more
	smallSegment = 1220            // bytes in packets that pass wherever IPv6 does
)

// relief is the one more rail.
type relief struct {
	attempt *boot.Attempt // under way; nil: none
	way     way
	rail    int
	began   time.Time
	tries   int
	refused int             // attempts in turn
	idle    [][2]netip.Addr // ends of connections that were made since nothing moves, and carried nothing either
	ended   atomic.Int32    // 1 + the rail that the other end let go of last; 0: none. Written by any thread
}

// way is from an interface of this host to an address of another.
type way struct {
	by boot.Interface
	to netip.AddrPort
}

func (w *way) ends() [2]netip.Addr { return [2]netip.Addr{w.by.Addr, w.to.Addr()} }

func (a *relief) hangUp() {
	if a.attempt != nil {
		a.attempt.Close()
		a.attempt = nil
	}
}

// relieve goes on with what is laid beside rails that stand still, and reports whether anything is. Both processes do so.
func (f *Far) relieve(now time.Time) (busy bool) {
	a := &f.aid
	switch {
	case f.link.Stuck() < relieveAfter:
		if a.hangUp(); now.Sub(a.began) > movedTime {
			a.idle = nil
		}
	case a.attempt == nil && now.Sub(a.began) < relieveAfter:
	default:
		return f.lend(a, now)
	}
	return false
}

// lend goes on with the rail, and reports whether it is being laid.
func (f *Far) lend(a *relief, now time.Time) bool {
	if a.attempt == nil {
		if a.rail = f.link.Spare(f.dials); a.rail < 0 {
			return false
		}
		a.began = now
		a.choose(f.ways(), f.carried[:])
		a.attempt = boot.Try(a.way.by, a.way.to, doorOf(f.name, f.secret), f.secret[:], 0, uint8(purposeRail+a.rail))
	}
	conn, err := a.attempt.Turn()
	switch {
	case conn.FD >= 0:
		a.refused = 0
	case err == nil && now.Sub(a.began) < attemptTime:
		return true
	case a.attempt.Refuses() && slices.Contains(f.carried[:], a.way.ends()):
		if a.refused++; a.refused == mostRefusals {
			f.fail(fmt.Errorf("nothing moves, and it listens no more at %s", a.attempt.Reasons()))
		}
		a.hangUp()
		return false
	}
	a.hangUp()
	a.ended.Store(0)
	if conn.FD >= 0 {
		if f.sayRelief(a); a.way.by.Segment == 0 {
			a.idle = append(a.idle, a.way.ends())
		}
		a.began = now // it has its time to move
		f.add(a.rail, conn)
	}
	return false
}

// choose takes the way of a rail that the other end let go of just now, as its path is there, else each way in turn. By one that has led
// to a connection which carried nothing it is to send small packets.
func (a *relief) choose(ways []way, carried [][2]netip.Addr) {
	if k := a.ended.Load(); k > 0 {
		if at := slices.IndexFunc(ways, func(w way) bool { return w.ends() == carried[k-1] }); at >= 0 {
			a.way = ways[at]
			return
		}
	}
	a.way = ways[a.tries%len(ways)]
	a.tries++
	if at := slices.Index(a.idle, a.way.ends()); at >= 0 {
		a.idle = slices.Delete(a.idle, at, at+1)
		a.way.by.Segment = smallSegment
	}
}

func (f *Far) sayRelief(a *relief) {
	stuck := f.link.Stuck().Seconds()
	label, rank := f.label()
	if a.way.by.Segment == 0 {
		f.say("nothing has moved to rank %d for %.1f s; rail %d is laid beside the others, by %s to %v", rank, stuck, a.rail, a.way.by.Name,
			a.way.to.Addr())
		return
	}
	log.Warn("communicator %s: nothing has moved to rank %d for %.1f s though it can be connected to: large packets seem to be lost "+
		"between %s and %v, compare the MTU of all interfaces and switches on the way; rail %d sends small ones", label, rank, stuck,
		a.way.by.Name, a.way.to.Addr(), a.rail)
}

// ways are those to the process: first the one of the first connection, then each interface with each address that it may lead to: on its
// own network, or on none of ours. A host may answer for the addresses of all its interfaces at each of them, but connections keep to one.
func (f *Far) ways() []way {
	return waysTo(f.pool.svc.Interfaces(), f.rails, f.first, f.addrs[0].Port())
}

func waysTo(nics []boot.Interface, rails []netip.AddrPort, first [2]netip.Addr, port uint16) []way {
	list := []way{{to: netip.AddrPortFrom(first[1], port)}}
	for _, n := range nics {
		if n.Addr == first[0] {
			list[0].by = n
		}
		for _, to := range rails {
			other := n.Addr != first[0] || to.Addr() != first[1]
			fits := n.Net.Contains(to.Addr()) || n.Addr.Is4() == to.Addr().Is4() && !direct(nics, to.Addr())
			if other && n.Addr != to.Addr() && fits {
				list = append(list, way{n, to})
			}
		}
	}
	return list
}
