package boot

import (
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// Where the networks of two interfaces overlap, as of two cards in one wide subnet, routes lead by one of them alone, whichever came up
// first: what is sent from the address of the other leaves by the wrong wire, and a socket that is bound to its interface hears no
// answer. There both ends are bound from the beginning: who dials to the interface, who listens by a listener for each of them, so that
// the answer to a call leaves by where the call came.

// divide listens once more at each of the chosen interfaces whose network another one of this host overlaps. Without the right to bind
// to an interface (kernels before 5.7 grant it to the privileged only) routes decide.
func (s *Service) divide(all []hostAddr) {
	for _, n := range s.nics {
		if !overlapped(n, all) {
			continue
		}
		if fd, err := s.listenBy(n); err == nil {
			s.listeners = append(s.listeners, fd)
			s.divided = append(s.divided, n)
		}
	}
}

// overlapped reports whether another interface has an address whose network overlaps with n's.
func overlapped(n Interface, all []hostAddr) bool {
	return slices.ContainsFunc(all, func(a hostAddr) bool {
		return a.name != n.Name && a.name != "lo" && !a.addr.IsLinkLocalUnicast() && netip.PrefixFrom(a.addr, a.bits).Masked().Overlaps(n.Net)
	})
}

// listenBy listens at the port of s to what comes by one interface; what comes by others goes on to the first listener. The kernel lets
// several sockets have a port only while all of them say that they share it: they do until this one listens, so that none of another
// process can join them.
func (s *Service) listenBy(n Interface) (int, error) {
	at, err := unix.Getsockname(s.listeners[0])
	if err != nil {
		return -1, err
	}
	family := unix.AF_INET6
	if _, is4 := at.(*unix.SockaddrInet4); is4 {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	opened(fd)
	all := append(slices.Clone(s.listeners), fd)
	share(all, 1)
	if family == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err = unix.BindToDevice(fd, n.Name); err == nil {
		err = unix.Bind(fd, at)
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	share(all, 0)
	if err != nil {
		Close(fd)
		return -1, err
	}
	return fd, nil
}

func share(fds []int, on int) {
	for _, fd := range fds {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, on)
	}
}

// way is the interface to which a connection to another host is to be bound, nil where routes may decide.
func (s *Service) way(to netip.Addr) *Interface {
	if slices.Contains(s.own, to) {
		return nil
	}
	for k := range s.divided {
		if s.divided[k].Net.Contains(to) {
			return &s.divided[k]
		}
	}
	return nil
}
