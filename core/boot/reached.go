package boot

import (
	"net/netip"
	"slices"
	"sync"
)

// reached are the networks by which this process has been answered from another host, or called by a rank there. Addresses on them go
// first from then on, also where others are being tried: what leads nowhere costs a process its head start once, and not with every rank.
type reached struct {
	mu   sync.Mutex
	nets []netip.Prefix // guarded by mu
}

// network is the one of this host's interfaces that an address is on. One that is on none is reached by a router, and is taken to share
// a network with its neighbours.
func (s *Service) network(a netip.Addr) netip.Prefix {
	for _, n := range s.networks {
		if n.Contains(a) {
			return n
		}
	}
	bits := 64
	if a.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(a, bits).Masked()
}

// note remembers that somebody was reached at an address. One of this host's own proves nothing.
func (s *Service) note(a netip.Addr) {
	if a.IsLoopback() || slices.Contains(s.own, a) {
		return
	}
	n := s.network(a)
	s.reached.mu.Lock()
	defer s.reached.mu.Unlock()
	if !slices.Contains(s.reached.nets, n) {
		s.reached.nets = append(s.reached.nets, n)
	}
}

// count is how many there are: what is reached stays so.
func (r *reached) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.nets)
}

// inOrder sorts addresses: first those that lie where somebody was reached, and reports whether there are such.
func (s *Service) inOrder(addrs []netip.AddrPort) bool {
	s.reached.mu.Lock()
	defer s.reached.mu.Unlock()
	last := func(a netip.AddrPort) int {
		if slices.Contains(s.reached.nets, s.network(a.Addr())) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(addrs, func(a, b netip.AddrPort) int { return last(a) - last(b) })
	return len(addrs) > 0 && last(addrs[0]) == 0
}
