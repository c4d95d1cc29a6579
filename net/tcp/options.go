package tcp

import "golang.org/x/sys/unix"

// Options are what the user has set of connections between hosts. Zero leaves the choice to the kernel.
type Options struct {
	Rate          uint64 // bytes per second that this host may send by each of its network cards
	TrafficClass  int    // the byte of that name in each packet: IPv4's TOS, IPv6's traffic class
	SendBuffer    int    // bytes; also below 0 the kernel chooses
	ReceiveBuffer int    // likewise
}

// apply sets what a socket can be told for good. Whoever asked for more than the system allows has what it allows.
func (o *Options) apply(fd int) {
	if o.TrafficClass != 0 { // a socket of IPv6 may carry IPv4: each family takes what is its own
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, o.TrafficClass)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, o.TrafficClass)
	}
	if o.SendBuffer > 0 {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, o.SendBuffer)
	}
	if o.ReceiveBuffer > 0 {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, o.ReceiveBuffer)
	}
}
