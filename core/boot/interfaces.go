package boot

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Interface is one that may be a rail to other hosts.
type Interface struct {
	Name    string
	Index   int
	Addr    netip.Addr
	Net     netip.Prefix // what is reached by it directly
	Segment int          // bytes that a packet by it may carry; 0: as many as its MTU allows
}

// Interfaces are those of this process's host that are to carry data, likely ones only, each once.
func (s *Service) Interfaces() []Interface { return s.nics }

// Choice says which interfaces are used and why each other one is not, for the log.
func (s *Service) Choice() string { return s.choice }

// Rails are the addresses of Interfaces at which this process listens, in the same order.
func (s *Service) Rails() (at []netip.AddrPort) {
	for _, n := range s.nics {
		at = append(at, netip.AddrPortFrom(n.Addr, s.addrs[0].Port()))
	}
	return at
}

// chooseInterfaces takes an IPv4 address of each interface that is wanted and may lead to another host, or an IPv6 address where it
// has no other. All that the user names count as leading somewhere.
func chooseInterfaces(s Settings, all []hostAddr, names []string) (nics []Interface, choice string) {
	whys := map[string]string{}
	for _, a := range all {
		why := s.bars(a)
		if why == "" && s.Interfaces == "" && doubtful(a) {
			why = "such interfaces rarely lead to another host: name it in NCCL_SOCKET_IFNAME if it does"
		}
		at := slices.IndexFunc(nics, func(n Interface) bool { return n.Name == a.name })
		switch {
		case why != "":
			whys[a.name] = why
		case at < 0:
			nics = append(nics, newInterface(a))
		case nics[at].Addr.Is6() && a.addr.Is4():
			nics[at] = newInterface(a)
		}
	}
	return nics, describe(nics, names, whys)
}

func newInterface(a hostAddr) Interface {
	return Interface{Name: a.name, Index: a.index, Addr: a.addr, Net: netip.PrefixFrom(a.addr, a.bits).Masked()}
}

func describe(nics []Interface, names []string, whys map[string]string) string {
	var used, not []string
	for _, n := range nics {
		used = append(used, fmt.Sprintf("%s (%v/%d)", n.Name, n.Addr, n.Net.Bits()))
	}
	if used == nil {
		used = []string{"none but loopback"}
	}
	for _, name := range names {
		if slices.ContainsFunc(nics, func(n Interface) bool { return n.Name == name }) {
			continue
		}
		why := whys[name]
		if why == "" {
			why = "down, or without an address"
		}
		not = append(not, fmt.Sprintf("%s (%s)", name, why))
	}
	return fmt.Sprintf("interfaces to other hosts: %s; not used: %s", strings.Join(used, ", "), strings.Join(not, ", "))
}

// Ends are the two addresses of a connection.
func Ends(fd int) (local, remote netip.Addr) {
	l, _ := unix.Getsockname(fd)
	r, _ := unix.Getpeername(fd)
	return address(l), address(r)
}

func address(sa unix.Sockaddr) netip.Addr {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(sa.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(sa.Addr).Unmap()
	}
	return netip.Addr{}
}

// Pin makes a connection between hosts stay on the interface that has its own address, whatever the routes say: where two networks
// overlap the kernel would choose one for both. It is a wish: kernels before 5.7 grant it to the privileged only.
func (s *Service) Pin(fd int) {
	local, _ := Ends(fd)
	for _, n := range s.nics {
		if n.Addr == local && !local.IsLoopback() && n.Name != "lo" {
			_ = unix.BindToDevice(fd, n.Name)
		}
	}
}
