package wire

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func example() Peer {
	return Peer{Library: "HCCL 0.1 (/lib/libnccl.so.2)", PID: 42, Started: 77, BootID: "b", NetNS: 1, PIDNS: 2, Exchange: "hccl-x",
		ArenaKey: [16]byte{1}, SegmentKey: [16]byte{15: 9}, CanShare: true,
		Addrs:    []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:80"), netip.MustParseAddrPort("[fd00::1]:81")},
		Settings: []Setting{{"NCCL_ALGO", "ring"}, {"HCCL_DETERMINISTIC", "1"}}}
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
