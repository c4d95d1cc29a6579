package links

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"hccl.dev/hccl/core/boot"
)

// A further connection goes from each interface to what is on its network, and to what is on no network of ours: nowhere by an interface
// where another one leads there, as hosts answer for all their addresses at each interface and then send by another.
func TestWaysOfRelief(t *testing.T) {
	nics := []boot.Interface{nic("e0", "10.0.0.1/24"), nic("e1", "10.1.0.1/24")}
	for name, c := range map[string]struct {
		rails []string
		want  []string
	}{
		"two networks": {[]string{"10.0.0.2", "10.1.0.2"}, []string{"e0 10.0.0.2", "e1 10.1.0.2"}},
		"a router":     {[]string{"10.0.0.2", "10.5.0.2"}, []string{"e0 10.0.0.2", "e0 10.5.0.2", "e1 10.5.0.2"}},
		"two families": {[]string{"10.0.0.2", "fd00::2"}, []string{"e0 10.0.0.2"}},
	} {
		var rails []netip.AddrPort
		for _, a := range c.rails {
			rails = append(rails, netip.AddrPortFrom(netip.MustParseAddr(a), 80))
		}
		var got []string
		for _, w := range waysTo(nics, rails, [2]netip.Addr{nics[0].Addr, rails[0].Addr()}, 80) {
			got = append(got, fmt.Sprint(w.by.Name, " ", w.to.Addr()))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Packets are small where a connection was made by the same way and carried nothing, not where none could be made.
func TestSmallPacketsOfRelief(t *testing.T) {
	nics := []boot.Interface{nic("e0", "10.0.0.1/24"), nic("e1", "10.1.0.1/24")}
	ways := []way{{nics[0], netip.MustParseAddrPort("10.0.0.2:80")}, {nics[1], netip.MustParseAddrPort("10.1.0.2:80")}}
	var a relief
	var got []string
	for k := range 8 {
		a.choose(ways, nil)
		got = append(got, fmt.Sprint(a.way.by.Name, " ", a.way.by.Segment > 0))
		if k == 3 {
			a.idle = append(a.idle, a.way.ends())
		}
	}
	want := []string{"e0 false", "e1 false", "e0 false", "e1 false", "e0 false", "e1 true", "e0 false", "e1 false"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func nic(name, prefix string) boot.Interface {
	p := netip.MustParsePrefix(prefix)
	return boot.Interface{Name: name, Addr: p.Addr(), Net: p.Masked()}
}
