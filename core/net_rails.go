package core

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/net/tcp"
)

// railKeeper lays further rails between ranks of two hosts that have several interfaces, beside the work of the communicator: init
// waits for one connection alone, and interfaces that lead nowhere cost nobody anything. It looks after them until the communicator
// ends, and lays those anew that failed, as often as it takes; and where nothing moves at all it tries others (net_relief.go).
//
// The higher rank dials, from one of its interfaces to one of the other's addresses, and numbers the rail; the lower rank takes what
// arrives. One goroutine does it all, without waiting for anybody.
type railKeeper struct {
	c     *Comm
	svc   *boot.Service
	inbox *boot.Inbox
	wants []*wantedRail
	aid   []relief // by rank
	stop  chan struct{}
	wait  sync.WaitGroup
}

// wantedRail is a rail that this rank dials.
type wantedRail struct {
	rank, rail int
	by         boot.Interface
	to         netip.AddrPort
	attempt    *boot.Attempt // under way; nil: none
	began      time.Time     // of the attempt, or of the pause behind the last one
	pause      time.Duration
	worked     bool      // once: then it may come back any time
	laid       time.Time // zero: it is not there
	brief      int       // how often in turn it failed soon after it was laid
}

const (
	tendTime      = 100 * time.Millisecond
	attendTime    = 10 * time.Millisecond // while rails are being laid
	attemptTime   = 2 * time.Second
	railPause     = time.Second // before a rail is tried again
	mostRailPause = time.Minute // before one that never worked is
	mostBrief     = 3           // doublings of the pause of one that works briefly: it is used again within 10 s
	briefTime     = 10 * time.Second
)

// addFirst hands the first connection to rank r over.
func (c *Comm) addFirst(r, fd int) error {
	c.first[r][0], c.first[r][1] = boot.Ends(fd)
	if svc, err := boot.Default(); err == nil && c.remote(r) {
		svc.Pin(fd)
	}
	return c.net.Add(r, fd)
}

// doneWith closes the inbox unless more rails are to come by it.
func (c *Comm) doneWith(inbox *boot.Inbox) {
	if c.rails == nil {
		inbox.Close()
	}
}

// remote reports whether rank r is on another host, or cut off from this one as if it were.
func (c *Comm) remote(r int) bool {
	me, p := &c.peers[c.rank], &c.peers[r]
	return me.BootID != p.BootID || me.NetNS != p.NetNS
}

// keepRails begins to lay rails to those ranks to which several are possible: one has several interfaces then, and so has this.
func (c *Comm) keepRails(inbox *boot.Inbox) {
	svc, err := boot.Default()
	if err != nil || !slices.ContainsFunc(c.ranks(), c.remote) {
		return
	}
	several := func(r int) bool { return c.remote(r) && len(c.peers[r].Rails) > 1 && len(c.peers[c.rank].Rails) > 1 }
	k := &railKeeper{c: c, svc: svc, inbox: inbox, aid: make([]relief, c.n), stop: make(chan struct{})}
	for r := range c.rank {
		if several(r) {
			k.want(r)
		}
	}
	c.rails = k
	k.wait.Go(k.run)
}

func (c *Comm) ranks() []int {
	all := make([]int, c.n)
	for r := range all {
		all[r] = r
	}
	return all
}

// want lists the rails to rank r: each interface of ours with an address on its own network, or, where it has none there, with one
// that no other interface of ours reaches directly. Each interface of either side is in one of them.
func (k *railKeeper) want(r int) {
	nics, rails := k.svc.Interfaces(), k.c.peers[r].Rails
	pairs := pairRails(nics, rails, k.c.first[r], k.c.settings.CrossNIC != 0)
	for _, p := range pairs {
		n := len(k.wants)
		rail := 1
		for n > 0 && k.wants[n-1].rank == r && rail <= k.wants[n-1].rail {
			rail = k.wants[n-1].rail + 1
		}
		if rail < tcp.MaxRails {
			k.wants = append(k.wants, &wantedRail{rank: r, rail: rail, by: nics[p[0]], to: rails[p[1]]})
		}
	}
}

// pairRails pairs interfaces here with addresses there, by their places in the lists. had is the connection that there is already;
// without cross those that a router joins must stand at one place.
func pairRails(nics []boot.Interface, rails []netip.AddrPort, had [2]netip.Addr, cross bool) (pairs [][2]int) {
	here, there := make([]bool, len(nics)), make([]bool, len(rails))
	for i := range nics {
		here[i] = nics[i].Addr == had[0]
	}
	direct := func(a netip.Addr) bool {
		return slices.ContainsFunc(nics, func(n boot.Interface) bool { return n.Net.Contains(a) })
	}
	for j := range rails {
		there[j] = rails[j].Addr() == had[1]
	}
	for _, routed := range []bool{false, true} {
		for i := range nics {
			for j := range rails {
				a := rails[j].Addr()
				fits := nics[i].Net.Contains(a) || routed && !direct(a) && a.Is4() == nics[i].Addr.Is4() && (cross || i == j)
				if !here[i] && !there[j] && fits && a != nics[i].Addr {
					here[i], there[j] = true, true
					pairs = append(pairs, [2]int{i, j})
				}
			}
		}
	}
	return pairs
}

func (k *railKeeper) run() {
	tick := time.NewTicker(tendTime)
	defer tick.Stop()
	for pace := tendTime; ; {
		if want := k.turn(time.Now()); want != pace {
			pace = want
			tick.Reset(pace)
		}
		select {
		case <-k.stop:
			return
		case <-tick.C:
		}
	}
}

// turn takes what has arrived, goes on with what is under way, and says when to come again.
func (k *railKeeper) turn(now time.Time) time.Duration {
	k.c.net.Tend()
	for {
		purpose, from, fd, ok := k.inbox.Next(purposeRail, purposeRail+tcp.MaxRails-1)
		if !ok {
			break
		}
		k.add(from, int(purpose-purposeRail), fd)
	}
	pace := tendTime
	for _, w := range k.wants {
		if k.dial(w, now) {
			pace = attendTime
		}
	}
	if k.relieve(now) {
		pace = attendTime
	}
	return pace
}

// dial goes on with a rail and reports whether it is being laid.
func (k *railKeeper) dial(w *wantedRail, now time.Time) bool {
	if w.attempt == nil {
		if k.c.net.Alive(w.rank, w.rail) || k.c.farewell(w.rank) != "" {
			return false
		}
		if w.lost(now); now.Sub(w.began) < w.pause {
			return false
		}
		w.began = now
		w.attempt = boot.Try(w.by, w.to, k.c.peers[w.rank].Door, k.c.secret[:], k.c.rank, uint8(purposeRail+w.rail))
	}
	fd, err := w.attempt.Turn()
	switch {
	case fd >= 0:
		w.worked, w.pause, w.laid = true, railPause, now
		k.add(w.rank, w.rail, fd)
		k.c.log.Info(log.Net, "communicator %s: rail %d to rank %d goes by %s to %v", k.c.label(), w.rail, w.rank, w.by.Name, w.to.Addr())
	case err != nil || now.Sub(w.began) > attemptTime:
		if w.pause == 0 {
			k.c.log.Info(log.Net, "communicator %s: no rail to rank %d by %s to %v: %v", k.c.label(), w.rank, w.by.Name, w.to.Addr(), err)
		}
		w.pause = max(railPause, min(2*w.pause, mostRailPause))
		if w.worked {
			w.pause = railPause
		}
		w.began = now
	default:
		return true
	}
	w.attempt.Close()
	w.attempt = nil
	return false
}

// lost takes note that the rail failed. One that fails again and again as soon as it is used gets longer pauses, and small packets every
// other time: it may be large ones that are lost on its way.
func (w *wantedRail) lost(now time.Time) {
	if w.laid.IsZero() {
		return
	}
	if now.Sub(w.laid) > briefTime {
		w.brief = 0
	} else {
		w.brief++
	}
	w.laid, w.began, w.pause = time.Time{}, now, railPause<<min(w.brief, mostBrief)/2
	w.by.Segment = w.brief % 2 * smallSegment
}

func (k *railKeeper) add(rank, rail, fd int) {
	k.svc.Pin(fd)
	if err := k.c.net.AddRail(rank, rail, fd); err != nil {
		k.c.log.Info(log.Net, "communicator %s: rail %d: %v", k.c.label(), rail, err)
	}
}

// end returns when nothing is laid any more.
func (k *railKeeper) end() {
	close(k.stop)
	k.wait.Wait()
	for _, w := range k.wants {
		if w.attempt != nil {
			w.attempt.Close()
		}
	}
	for r := range k.aid {
		k.aid[r].close()
	}
	k.inbox.Close()
}
