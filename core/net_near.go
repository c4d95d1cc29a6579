package core

import (
	"net/netip"
	"slices"
	"strings"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/graph/affinity"
	"hccl.dev/hccl/internal/log"
)

// Where several processes of a host send, and each was given processors of one NUMA node, a card at another node is likelier to be near
// another one of them. So slices go by near cards first, and by distant ones where these are not enough (net/tcp says when that is).

// nearCards says of each interface to other hosts whether its card stands at the NUMA node of this process; nil: none is any nearer.
func (c *Comm) nearCards(nics []boot.Interface) []bool {
	if c.net == nil || len(nics) < 2 || !severalNodes() && c.settings.TopoFile == "" {
		return nil
	}
	var names []string
	for _, n := range nics {
		names = append(names, n.Name)
	}
	return affinity.Near(hostMachine(c.settings.TopoFile).Machine, names, libraryMask())
}

// distantCards are the addresses of interfaces that are left to other processes of this host while near ones do.
func (c *Comm) distantCards() (addrs []netip.Addr) {
	nics := pool.Interfaces()
	near := c.nearCards(nics)
	if near == nil || !c.shares() {
		return nil
	}
	var by, spared []string
	for k, n := range nics {
		if near[k] {
			by = append(by, n.Name)
		} else {
			addrs, spared = append(addrs, n.Addr), append(spared, n.Name)
		}
	}
	log.InfoOnce(log.Net, "near", "slices to other hosts go first by %s, near the processors that this process was given (%s), and by %s "+
		"where that is not enough or %[3]s proves to be twice as fast", strings.Join(by, ", "), libraryMask(), strings.Join(spared, ", "))
	return addrs
}

// shares reports whether ranks of the communicator on this host are in several processes.
func (c *Comm) shares() bool {
	return slices.ContainsFunc(c.ofHost(), func(r int) bool { return c.peers[r].Process != c.peers[c.rank].Process })
}
