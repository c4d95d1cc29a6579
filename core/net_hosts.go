package core

import (
	"slices"
	"sync"

	"hccl.dev/hccl/core/links"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/shm"
)

// place is what ranks that can hand memory to each other have in common.
type place struct {
	host  string
	netNS uint64
}

// groups divides the ranks into those that can share memory, as far as what they told says: one list for each place, in the order
// of its first rank. A rank that cannot share is alone. All ranks get the same lists.
func (c *Comm) groups() (groups [][]int) {
	at := map[place]int{}
	for r := range c.peers {
		p := &c.peers[r]
		here := place{p.BootID, p.NetNS}
		if k, ok := at[here]; ok && p.CanShare {
			groups[k] = append(groups[k], r)
			continue
		}
		if p.CanShare {
			at[here] = len(groups)
		}
		groups = append(groups, []int{r})
	}
	return groups
}

// group is the one that rank r is in.
func group(groups [][]int, r int) []int {
	return groups[slices.IndexFunc(groups, func(g []int) bool { return slices.Contains(g, r) })]
}

// several reports whether any two ranks can share memory.
func several(groups [][]int) bool {
	return slices.ContainsFunc(groups, func(g []int) bool { return len(g) > 1 })
}

// sockets are those of the only communicator that a batch waits for, where all that its ranks send comes by them; else nil. The thread
// then sleeps on them and reads what comes itself, which spares it two others. Who raises a reason to wake is heard at the end of a nap.
func (b *batch) sockets() *tcp.Fabric {
	if len(b.comms) != 1 || b.comms[0].near != nil {
		return nil
	}
	return b.comms[0].net
}

// onHost is how many ranks run on this rank's host, whether they can share memory or not.
func (c *Comm) onHost() (n int) {
	for r := range c.peers {
		if c.peers[r].BootID == c.peers[c.rank].BootID {
			n++
		}
	}
	return n
}

// isNear reports whether data of rank r come by shared memory.
func (c *Comm) isNear(r int) bool {
	return c.net == nil || c.near != nil && c.near.Index(r) >= 0
}

// rateBook is where the processes of this host share the bound of its network cards.
type rateBook struct{ ledger *shm.Ledger }

func (b rateBook) Post(line uint64, mine tcp.Account) tcp.Account {
	all := b.ledger.Post(line, [3]uint64{mine.Hungry, mine.Reserved, mine.Sent})
	return tcp.Account{Hungry: all[0], Reserved: all[1], Sent: all[2]}
}

var openRates = sync.OnceFunc(func() { tcp.Rates = rateBook{shm.OpenLedger()} })

// netOptions are those of this rank's connections.
func (c *Comm) netOptions() tcp.Options {
	v := c.settings
	if v.NetRate > 0 {
		openRates()
	}
	return tcp.Options{Rate: uint64(v.NetRate) * 1e6 / 8, TrafficClass: v.NetClass, SendBuffer: int(v.SocketSendBuffer),
		ReceiveBuffer: int(v.SocketRecvBuffer), LargeFirst: v.NetPolicy == "large-first", ZeroCopy: v.NetZeroCopy, Keepalive: v.NetKeepalive}
}

// pool is the connections of this process to others.
var pool links.Pool

// user is a communicator as the pool knows it.
type user struct{ *Comm }

func (u user) Label() string { return u.label() }
func (u user) Closing() bool { return u.closing.Load() }

// linkTerms are those of this rank's connections.
func (c *Comm) linkTerms() *links.Terms {
	v := c.settings
	return &links.Terms{Cross: v.CrossNIC != 0, Sockets: socketsOf(v), Idle: v.NetIdle, Patience: v.PeerTimeout, Named: v.SocketIfname,
		Distant: c.distantCards}
}

// isRemote reports whether rank r is on another host, or cut off from this one as if it were.
func (c *Comm) isRemote(r int) bool {
	me, p := &c.peers[c.rank], &c.peers[r]
	return me.BootID != p.BootID || me.NetNS != p.NetNS
}

// socketsOf is how many connections each rail has, 0 where the user has not said.
func socketsOf(v *params.Values) int {
	if v.SocketThreads == 0 && v.ThreadSockets == 0 {
		return 0
	}
	n := max(v.SocketThreads, 1) * max(v.ThreadSockets, 1)
	if n > tcp.MaxSockets {
		log.WarnOnce("sockets of a rail", "NCCL_SOCKET_NTHREADS (%d) times NCCL_NSOCKS_PERTHREAD (%d) are %d sockets by each interface to "+
			"another process: %d are used", v.SocketThreads, v.ThreadSockets, n, tcp.MaxSockets)
	}
	return min(n, tcp.MaxSockets)
}
