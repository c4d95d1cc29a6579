package boot

import (
	"crypto/rand"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

const backlog = 4096 // connections that wait for their turn

// listen tries the ports that the settings allow, from a random one on, so that processes that start together do not all try the
// same ones first.
func (s *Service) listen(set Settings) (uint16, error) {
	low, high, err := parsePorts(set.Ports)
	if err != nil {
		return 0, err
	}
	count := int(high) - int(low) + 1
	var start [4]byte
	rand.Read(start[:])
	first := int(le.Uint32(start[:]) % uint32(count))
	var last error
	for k := range count {
		fd, err := listenAt(low+uint16((first+k)%count), set.Family == "AF_INET")
		if err == nil {
			s.listeners = []int{fd}
			return boundPort(fd)
		}
		last = err
	}
	if low == 0 {
		return 0, &SystemError{"cannot listen for the other ranks", last}
	}
	return 0, &SystemError{fmt.Sprintf("no port of HCCL_PORT_RANGE=%s can be listened at; each process needs one, and the maker of an id "+
		"one more: widen the range", set.Ports), last}
}

// listenAt listens on all interfaces. SO_REUSEADDR is for ports whose old connections are in TIME_WAIT; one that has a listener
// stays refused.
func listenAt(port uint16, only4 bool) (int, error) {
	addr := netip.AddrPortFrom(netip.IPv6Unspecified(), port)
	if only4 {
		addr = netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	}
	family, sa := sockaddr(addr)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err == nil {
		opened(fd)
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		if !only4 {
			unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		}
		if err = unix.Bind(fd, sa); err == nil {
			err = unix.Listen(fd, backlog)
		}
		if err == nil {
			return fd, nil
		}
		Close(fd)
	}
	if !only4 && err != unix.EADDRINUSE { // no IPv6 here
		return listenAt(port, true)
	}
	return -1, err
}

func boundPort(fd int) (uint16, error) {
	sa, err := unix.Getsockname(fd)
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return uint16(sa.Port), nil
	case *unix.SockaddrInet6:
		return uint16(sa.Port), nil
	}
	return 0, &SystemError{"cannot tell the port of a listener", err}
}
