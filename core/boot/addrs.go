package boot

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// hostAddr is an address of an interface that is up.
type hostAddr struct {
	name  string
	addr  netip.Addr
	bits  int  // of addr that are the network's
	index int  // of the interface
	idle  bool // it has no carrier
}

// hostAddrs asks the kernel, by netlink: package net would bring the C library's resolver into the core.
func hostAddrs() (addrs []hostAddr, names []string, err error) {
	up, idle := map[int]string{}, map[int]bool{}
	err = dump(syscall.RTM_GETLINK, syscall.SizeofIfInfomsg, func(head []byte, attrs []syscall.NetlinkRouteAttr) {
		for _, a := range attrs {
			if a.Attr.Type == syscall.IFLA_IFNAME {
				name := strings.TrimRight(string(a.Value), "\x00")
				names = append(names, name)
				if flags := le.Uint32(head[8:]); flags&syscall.IFF_UP != 0 {
					index := int(int32(le.Uint32(head[4:])))
					up[index], idle[index] = name, flags&syscall.IFF_RUNNING == 0
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
		index := int(le.Uint32(head[4:]))
		if name := up[index]; name != "" && own.IsValid() {
			addrs = append(addrs, hostAddr{name, own, int(head[1]), index, idle[index]})
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

// How likely an address is to be reached, the likeliest 0. What has no room is left out from behind.
const (
	likely  = iota
	further // of an interface with one that is likely
	noCarrier
	dubious
	classes
)

// class is that of a, of which seen says whether its interface has had one already.
func (s *Settings) class(a hostAddr, seen bool) int {
	switch {
	case s.Interfaces == "" && doubtful(a):
		return dubious
	case a.idle:
		return noCarrier
	case seen:
		return further
	}
	return likely
}

// chooseAddrs are the addresses by which other ranks may reach this process, likely ones first and loopback last: as many as an id has
// room for. left are the likely ones that have none. The C side does the same for the id (meet_addrs.c); a test compares the two.
func chooseAddrs(s Settings, all []hostAddr, names []string) (chosen []netip.Addr, left int, err error) {
	if !s.matches(names) {
		return nil, 0, &ArgumentError{fmt.Sprintf("NCCL_SOCKET_IFNAME=%s matches no interface of this host; there are: %s",
			s.Interfaces, strings.Join(names, " "))}
	}
	var by [classes][]netip.Addr
	seen := map[string]bool{}
	for _, a := range all {
		if s.bars(a) == "" {
			k := s.class(a, seen[a.name])
			by[k] = append(by[k], a.addr)
			seen[a.name] = true
		}
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if s.Family == "AF_INET6" {
		loopback = netip.IPv6Loopback()
	}
	room := idSize - idAddresses - len(packAddress(nil, loopback))
	for k, addrs := range by {
		for _, a := range addrs {
			if n := len(packAddress(nil, a)); n <= room {
				room -= n
				chosen = append(chosen, a)
			} else if k <= further {
				left++
			}
		}
	}
	return append(chosen, loopback), left, nil
}

// matches reports whether the user's rule chooses any interface.
func (s *Settings) matches(names []string) bool {
	return s.Interfaces == "" || slices.ContainsFunc(names, func(name string) bool { return chosen(s.Interfaces, name) })
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
