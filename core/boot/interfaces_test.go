package boot

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// Each interface is a rail once, by one address; what is not used is named with the reason.
func TestInterfacesForData(t *testing.T) {
	at := func(name, prefix string) hostAddr {
		p := netip.MustParsePrefix(prefix)
		return hostAddr{name: name, addr: p.Addr(), bits: p.Bits()}
	}
	all := []hostAddr{at("lo", "127.0.0.1/8"), at("eth0", "fd00::1/64"), at("eth0", "10.0.1.1/24"), at("eth0", "10.0.1.9/24"),
		at("eth1", "fd01::1/64"), at("eth2", "fe80::5/64"), at("docker0", "172.17.0.1/16")}
	names := []string{"lo", "eth0", "eth1", "eth2", "eth3", "docker0"}
	for _, c := range []struct{ rule, family, want, choice string }{
		{"", "", "eth0 10.0.1.1 10.0.1.0/24 eth1 fd01::1 fd01::/64", "eth3 (down, or without an address), docker0 (such interfaces rarely"},
		{"", "AF_INET6", "eth0 fd00::1 fd00::/64 eth1 fd01::1 fd01::/64", "eth2 (link-local)"},
		{"docker,eth0", "", "eth0 10.0.1.1 10.0.1.0/24 docker0 172.17.0.1 172.17.0.0/16", "eth1 (NCCL_SOCKET_IFNAME=docker,eth0)"},
		{"=lo", "", "", "interfaces to other hosts: none but loopback; not used: lo (loopback)"},
	} {
		nics, choice := chooseInterfaces(Settings{Interfaces: c.rule, Family: c.family}, all, names)
		var got []string
		for _, n := range nics {
			got = append(got, fmt.Sprint(n.Name, " ", n.Addr, " ", n.Net))
		}
		if text := strings.Join(got, " "); text != c.want || !strings.Contains(choice, c.choice) {
			t.Errorf("%q, %q: %s, want %s; %s", c.rule, c.family, text, c.want, choice)
		}
	}
}
