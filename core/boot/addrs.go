package boot

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// hostAddr is an address of an interface that is up.
type hostAddr struct {
	name  string
	addr  netip.Addr
	bits  int // of addr that are the network's
	index int // of the interface
}

// hostAddrs asks the kernel, by netlink: package net would bring the C library's resolver into the core.
func hostAddrs() (addrs []hostAddr, names []string, err error) {
	up := map[int]string{}
	err = dump(syscall.RTM_GETLINK, syscall.SizeofIfInfomsg, func(head []byte, attrs []syscall.NetlinkRouteAttr) {
		for _, a := range attrs {
			if a.Attr.Type == syscall.IFLA_IFNAME {
				name := strings.TrimRight(string(a.Value), "\x00")
				names = append(names, name)
				if le.Uint32(head[8:])&syscall.IFF_UP != 0 {
					up[int(int32(le.Uint32(head[4:])))] = name
				}
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	err = dump(syscall.RTM_GETADDR, syscall.SizeofIfAddrmsg, func(head []byte, attrs []syscall.NetlinkRouteAttr) {
		var own netip.Addr
		for _, a := range attrs {
			// On a point-to-point link IFA_ADDRESS is the other end, and IFA_LOCAL this one.
			if a.Attr.Type == syscall.IFA_LOCAL || a.Attr.Type == syscall.IFA_ADDRESS && !own.IsValid() {
				own, _ = netip.AddrFromSlice(a.Value)
			}
		}
		if name := up[int(le.Uint32(head[4:]))]; name != "" && own.IsValid() {
			addrs = append(addrs, hostAddr{name, own, int(head[1]), int(le.Uint32(head[4:]))})
		}
	})
	return addrs, names, err
}

// InterfaceOf is the name of the interface that has an address, "" if none has.
func InterfaceOf(addr netip.Addr) string {
	all, _, _ := hostAddrs()
	for _, a := range all {
		if a.addr.Unmap() == addr.Unmap().WithZone("") {
			return a.name
		}
	}
	return ""
}

// dump calls each with the fixed part and the attributes of every message. Netlink is in the host's byte order, and every host
// that this library runs on is little-endian.
func dump(what, headLen int, each func(head []byte, attrs []syscall.NetlinkRouteAttr)) error {
	raw, err := syscall.NetlinkRIB(what, syscall.AF_UNSPEC)
	if err != nil {
		return &SystemError{"cannot list the interfaces of this host", err}
	}
	msgs, err := syscall.ParseNetlinkMessage(raw)
	if err != nil {
		return &SystemError{"cannot list the interfaces of this host", err}
	}
	for i := range msgs {
		attrs, err := syscall.ParseNetlinkRouteAttr(&msgs[i])
		if err == nil && len(msgs[i].Data) >= headLen {
			each(msgs[i].Data[:headLen], attrs)
		}
	}
	return nil
}

// chosen reports whether rule (NCCL_SOCKET_IFNAME: prefixes, "=" for whole names, "^" for all others) chooses an interface.
func chosen(rule, name string) bool {
	rule, not := strings.CutPrefix(rule, "^")
	whole := strings.HasPrefix(rule, "=")
	for p := range strings.SplitSeq(rule, ",") {
		p = strings.TrimPrefix(p, "=")
		if p != "" && (name == p || !whole && strings.HasPrefix(name, p)) {
			return !not
		}
	}
	return not
}

// doubtful are interfaces that rarely lead to another host. They come last, unless the user names them.
func doubtful(a hostAddr) bool {
	for _, p := range []string{"docker", "virbr", "br-", "veth", "tun", "vpn", "cni", "podman"} {
		if strings.HasPrefix(a.name, p) {
			return true
		}
	}
	return a.addr.IsLinkLocalUnicast()
}

func familyAllows(family string, a netip.Addr) bool {
	return !(family == "AF_INET" && !a.Is4()) && !(family == "AF_INET6" && a.Is4())
}

// bars says why an address is of no use to other hosts, or not wanted; "": it is.
func (s *Settings) bars(a hostAddr) string {
	switch {
	case s.Interfaces != "" && !chosen(s.Interfaces, a.name):
		return "NCCL_SOCKET_IFNAME=" + s.Interfaces
	case a.addr.IsLoopback():
		return "loopback"
	case !familyAllows(s.Family, a.addr):
		return "NCCL_SOCKET_FAMILY=" + s.Family
	case a.addr.Is6() && a.addr.IsLinkLocalUnicast(): // means nothing elsewhere without the interface's name there
		return "link-local"
	}
	return ""
}

// chooseAddrs are the addresses by which other ranks may reach this process, likely ones first and loopback last.
// The C side does the same for the id (meet_host.c); a test compares the two.
func chooseAddrs(s Settings, all []hostAddr, names []string) ([]netip.Addr, error) {
	var likely, late []netip.Addr
	matched := s.Interfaces == ""
	for _, name := range names {
		matched = matched || chosen(s.Interfaces, name)
	}
	if !matched {
		return nil, &ArgumentError{fmt.Sprintf("NCCL_SOCKET_IFNAME=%s matches no interface of this host; there are: %s",
			s.Interfaces, strings.Join(names, " "))}
	}
	for _, a := range all {
		if s.bars(a) != "" {
			continue
		}
		if s.Interfaces == "" && doubtful(a) {
			late = append(late, a.addr)
		} else {
			likely = append(likely, a.addr)
		}
	}
	likely = append(likely, late...)
	likely = likely[:min(len(likely), idMaxAddresses-1)]
	if s.Family == "AF_INET6" {
		return append(likely, netip.IPv6Loopback()), nil
	}
	return append(likely, netip.AddrFrom4([4]byte{127, 0, 0, 1})), nil
}

// parsePorts reads HCCL_PORT_RANGE, "a-b"; 0, 0 is any port.
func parsePorts(s string) (low, high uint16, err error) {
	if s == "" {
		return 0, 0, nil
	}
	a, b, ok := strings.Cut(s, "-")
	l, err1 := strconv.ParseUint(a, 10, 16)
	h, err2 := strconv.ParseUint(b, 10, 16)
	if !ok || err1 != nil || err2 != nil || l == 0 || l > h {
		return 0, 0, &ArgumentError{fmt.Sprintf("HCCL_PORT_RANGE=%s is not a range of ports; write it as 42000-42031", s)}
	}
	return uint16(l), uint16(h), nil
}
