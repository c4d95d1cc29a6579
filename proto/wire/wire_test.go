package wire

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func example() Peer {
	return Peer{Library: "HCCL 0.1 (/lib/libnccl.so.2)", PID: 42, Started: 77, BootID: "b", NetNS: 1, PIDNS: 2, Exchange: [16]byte{7},
		ArenaKey: [16]byte{1}, SegmentKey: [16]byte{15: 9}, Door: [16]byte{3}, Process: [16]byte{4}, Token: [16]byte{5}, CanShare: true,
		Addrs:    []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:80"), netip.MustParseAddrPort("[fd00::1]:81")},
		Rails:    []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:80")},
		Settings: []Setting{{"NCCL_ALGO", "ring"}, {"HCCL_DETERMINISTIC", "1"}}, Host: "a", Topology: "0123456789abcdef",
		Rates: []Rate{{"numa1/cache4", 9e9}}, Rings: []Ring{{3, []int32{1, 0, 2}}, {4, nil}},
		Device: 5, Described: [32]byte{1, 31: 2}, Size: 99, Switch: "leaf3", Pod: -1, File: "/a.xml", WhyNot: "it has no GPUs"}
}

func TestPeerRoundTrip(t *testing.T) {
	want := example()
	var got Peer
	if err := got.Decode(want.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{})); d != "" {
		t.Error(d)
	}
}

func TestPeerRefuses(t *testing.T) {
	whole := (&Peer{Library: "x"}).Append(nil)
	for n := range whole {
		if new(Peer).Decode(whole[:n]) == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(whole))
		}
	}
	if new(Peer).Decode(append(whole, 0)) == nil {
		t.Error("a byte too many was accepted")
	}
	whole[0]++
	if new(Peer).Decode(whole) == nil {
		t.Error("another version was accepted")
	}
}

// What is too much to be told is left out, and the rest arrives.
func TestPeerFits(t *testing.T) {
	p := example()
	p.Rates = slices.Repeat([]Rate{{"a", 1}}, 1000)
	p.Rings = append(p.Rings, Ring{Line: 5, Devs: make([]int32, maxDevs+1)}, Ring{Line: 6})
	p.Fits()
	var got Peer
	if err := got.Decode(p.Append(nil)); err != nil || len(got.Rates) != maxItems || len(got.Rings) != 3 || got.Rings[2].Line != 6 {
		t.Errorf("%v, %d rates, %d rings", err, len(got.Rates), len(got.Rings))
	}
}

func FuzzPeer(f *testing.F) {
	p := example()
	f.Add(p.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, again Peer
		if p.Decode(b) != nil {
			return
		}
		if err := again.Decode(p.Append(nil)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, again, cmpopts.EquateComparable(netip.AddrPort{})); d != "" {
			t.Error(d)
		}
	})
}

func TestControlRoundTrip(t *testing.T) {
	want := Control{Kind: TellFault, Posted: true, State: 3, Ranks: [2]int32{1, 2},
		Headers: [2]Header{{Seq: 1, Lane: 2, Func: 3, Type: 4, Red: 5, Flags: 6, Root: -1, Count: 8, Extra: 9}, {Seq: 1 << 60}}}
	var got Control
	if err := got.Decode(want.Append(nil)); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if got.Decode(want.Append(nil)[1:]) == nil {
		t.Error("a short message was accepted")
	}
}
