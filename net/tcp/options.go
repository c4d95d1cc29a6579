package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

// Options are what the user has set of connections between hosts. Zero leaves the choice to the kernel.
type Options struct {
	Rate          uint64        // bytes per second that this host may send by each of its network cards
	TrafficClass  int           // the byte of that name in each packet: IPv4's TOS, IPv6's traffic class
	SendBuffer    int           // bytes; also below 0 the kernel chooses
	ReceiveBuffer int           // likewise
	LargeFirst    bool          // slices of the flow with the most bytes go first; else one of each flow in turn
	ZeroCopy      int           // bytes of a slice from which on it is sent without a copy; 0: never, -1: where that pays
	Keepalive     time.Duration // without use, until a rail among several is probed; 0: none is
}

// How TCP rides an outage out: it tries again at least every resendTime, so that bytes flow soon after the wire is back, and it does not
// give up by itself, as its count of attempts would have it do in seconds then. Who gives up is core.
const (
	tcpRTOMaxMS = 44 // TCP_RTO_MAX_MS, since Linux 6.15
	resendTime  = time.Second
	patientTime = 7 * 24 * time.Hour
	usualTime   = 2 * time.Minute // of a socket that nothing was said to
)

// apply sets what a socket can be told for good. Whoever asked for more than the system allows has what it allows.
func (o *Options) apply(fd int) {
	if unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(patientTime/time.Millisecond)) == nil {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, tcpRTOMaxMS, int(resendTime/time.Millisecond))
	}
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

// outlast has the kernel go on with what the socket holds when it is closed, or the process ends, as it does for other programs. It drops
// a closed socket whose peer takes nothing once it tries again at its rarest: with resendTime after two seconds. Net.mu is held.
func (c *conn) outlast() {
	if !c.closed && c.state.Load() != railDead { // others have taken over from one that is dead
		_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, tcpRTOMaxMS, int(usualTime/time.Millisecond))
	}
}
