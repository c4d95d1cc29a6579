package boot

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// What lies where somebody was reached goes first; this host's own addresses, which decoys repeat elsewhere, prove nothing.
func TestOrderOfAddresses(t *testing.T) {
	s := &Service{}
	for _, text := range []string{"127.0.0.1/8", "172.17.0.1/16", "10.5.0.1/24", "10.9.0.1/16", "fd00:1::1/64"} {
		p := netip.MustParsePrefix(text)
		s.own, s.networks = append(s.own, p.Addr()), append(s.networks, p.Masked())
	}
	given := []netip.AddrPort{}
	for _, a := range []string{"172.17.0.1", "10.5.0.7", "10.9.44.7", "192.168.3.7", "fd00:1::7", "127.0.0.1"} {
		given = append(given, netip.AddrPortFrom(netip.MustParseAddr(a), 80))
	}
	order := func() string {
		var places []string
		sorted := slices.Clone(given)
		s.inOrder(sorted)
		for _, a := range sorted {
			for k := range given {
				if given[k] == a {
					places = append(places, fmt.Sprint(k))
				}
			}
		}
		return strings.Join(places, " ")
	}
	for _, c := range []struct{ reached, want string }{
		{"172.17.0.1", "0 1 2 3 4 5"}, // ourselves
		{"127.0.0.1", "0 1 2 3 4 5"},
		{"192.168.3.99", "3 0 1 2 4 5"}, // by a router
		{"10.9.0.3", "2 3 0 1 4 5"},
		{"fd00:1::9", "2 3 4 0 1 5"},
	} {
		s.note(netip.MustParseAddr(c.reached))
		if got := order(); got != c.want {
			t.Errorf("after %s: %s, want %s", c.reached, got, c.want)
		}
	}
}
