package links

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/net/tcp"
)

// Interfaces are paired with what they reach directly, then by routes; each of either side is in one rail, whatever their numbers.
func TestRailsBetweenTwoHosts(t *testing.T) {
	a := func(texts ...string) (list []netip.AddrPort) {
		for _, s := range texts {
			list = append(list, netip.AddrPortFrom(netip.MustParseAddr(s), 80))
		}
		return list
	}
	two := []boot.Interface{nic("e0", "10.0.0.1/24"), nic("e1", "10.1.0.1/24")}
	for name, c := range map[string]struct {
		nics  []boot.Interface
		rails []netip.AddrPort
		had   [2]string
		want  [][2]int
	}{
		"same order":           {two, a("10.0.0.2", "10.1.0.2"), [2]string{"10.0.0.1", "10.0.0.2"}, [][2]int{{1, 1}}},
		"other order":          {two, a("10.1.0.2", "10.0.0.2"), [2]string{"10.1.0.1", "10.1.0.2"}, [][2]int{{0, 1}}},
		"one there":            {two, a("10.0.0.2"), [2]string{"10.0.0.1", "10.0.0.2"}, nil},
		"one leads elsewhere":  {two[:1], a("10.0.0.2", "10.9.0.2"), [2]string{"10.0.0.1", "10.0.0.2"}, nil},
		"routed":               {two, a("10.5.0.2", "10.6.0.2"), [2]string{"10.0.0.1", "10.5.0.2"}, [][2]int{{1, 1}}},
		"direct before routed": {two, a("10.5.0.2", "10.1.0.2"), [2]string{"10.7.0.1", "10.7.0.2"}, [][2]int{{1, 1}, {0, 0}}},
		"own address there":    {two, a("10.0.0.2", "10.1.0.1"), [2]string{"10.0.0.1", "10.0.0.2"}, nil},
		"other family":         {two, a("10.0.0.2", "fd00::2"), [2]string{"10.0.0.1", "10.0.0.2"}, nil},
	} {
		had := [2]netip.Addr{netip.MustParseAddr(c.had[0]), netip.MustParseAddr(c.had[1])}
		if got := pairRails(c.nics, c.rails, had, true); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// With NCCL_CROSS_NIC=0 a router joins interfaces of the same place only.
func TestRailsOfOnePlace(t *testing.T) {
	nics := []boot.Interface{nic("e0", "10.0.0.1/24"), nic("e1", "10.1.0.1/24"), nic("e2", "10.2.0.1/24")}
	rails := []netip.AddrPort{netip.MustParseAddrPort("10.5.0.2:80"), netip.MustParseAddrPort("10.6.0.2:80"),
		netip.MustParseAddrPort("10.7.0.2:80")}
	had := [2]netip.Addr{nics[0].Addr, rails[1].Addr()} // the kernel chose: nobody asked it for one place
	if got, want := pairRails(nics, rails, had, false), [][2]int{{2, 2}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := pairRails(nics, rails, had, true), [][2]int{{1, 0}, {2, 2}}; !slices.Equal(got, want) {
		t.Errorf("with cross: %v, want %v", got, want)
	}
}

// comm is a User.
type comm struct {
	name string
	ends bool
}

func (c *comm) Label() string { return c.name }
func (c *comm) Closing() bool { return c.ends }

// A rail is lost to a communicator that still needs it: not to one that is being ended, whose peers may end first.
func TestWhoLosesARail(t *testing.T) {
	ends, goes := &comm{name: "ends", ends: true}, &comm{name: "goes on"}
	f := &Far{users: []user{{ends, 1}, {goes, 2}}}
	if label, rank := f.label(); label != "goes on" || rank != 2 {
		t.Errorf("rank %d of %q", rank, label)
	}
	f.leave(goes)
	if label, rank := f.label(); rank != -1 {
		t.Errorf("rank %d of %q, which ends", rank, label)
	}
}

// What rails have carried is told for each, and for each of their sockets where there are several.
func TestWhatRailsAreSaidToCarry(t *testing.T) {
	for want, rails := range map[string][]tcp.RailState{
		"1.0 MB by rail 0": {{Sent: 1e6, Alive: true}},
		"3.0 MB by rail 0 (its sockets: 1.0, 2.0) (7.0 MB/s of late), of which failed: socket 1, 4.0 MB by rail 1, which has failed": {
			{Sent: 1e6, Rate: 5e6, Alive: true}, {Path: 1, Sent: 4e6}, {Socket: 1, Sent: 2e6, Rate: 2e6}},
	} {
		if got := railTexts(rails); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// A rail that fails again and again is dialled ever more rarely, but not where it may be the only one.
func TestPauseOfARailThatComesAndGoes(t *testing.T) {
	now := time.Now()
	w := &wantedRail{}
	for range 5 {
		w.laid = now
		w.lost(now)
	}
	if w.rest(0) < 2*railPause || w.rest(relieveAfter) > stuckPause {
		t.Errorf("it rests for %v, and for %v where nothing moves", w.rest(0), w.rest(relieveAfter))
	}
}
