package boot

import (
	"encoding/binary"
	"net/netip"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

// What a peer may send never panics, and what is accepted is consistent.

func FuzzParseID(f *testing.F) {
	id := make([]byte, idSize)
	le.PutUint32(id, idMagicValue)
	id[idPort], id[idCount], id[idAddresses] = 1, 1, addressV4
	f.Add(id)
	other := append([]byte{}, id...)
	other[idNumber]++
	f.Add(append(other, id...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if id, err := parseID(b); err == nil && (len(id.addrs) == 0 || len(id.addrs) > idSize || id.addrs[0].Port() == 0) {
			t.Errorf("accepted %+v", id)
		}
		if ids, err := parseIDs(b, 3); err == nil && (len(ids) == 0 || len(ids) > 3) {
			t.Errorf("accepted %d ids for 3 ranks", len(ids))
		}
	})
}

func someContact() *contact {
	return &contact{Key{1, 2, 3}, []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("[fd00::1]:443")}}
}

func FuzzDecodeContact(f *testing.F) {
	f.Add(someContact().encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := decodeContact(b)
		if again, same := decodeContact(c.encode()); ok && (!same || !reflect.DeepEqual(again, c)) {
			t.Errorf("%x decodes to %+v, which is written as %+v", b, c, again)
		}
	})
}

func FuzzAnswers(f *testing.F) {
	to := someContact().encode()
	b := binary.LittleEndian.AppendUint32(nil, 1)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = append(binary.LittleEndian.AppendUint32(b, uint32(len(to))), to...)
	f.Add(b, 1, 2)
	f.Add([]byte{5, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 'x'}, 0, 3)
	f.Fuzz(func(t *testing.T, b []byte, rank, n int) {
		if n > 0 && n <= maxRanks && rank >= 0 && rank < n {
			if ps, ok := (&meeting{circle: circleOf(rank, n, 1), rank: rank}).decodeGo(b); ok && n > 1 && ps[0].rank != (rank+1)%n {
				t.Errorf("rank %d of %d: partners %+v", rank, n, ps)
			}
		}
		if fail, ok := decodeFailed(b); ok && 12+4*len(fail.missing)+len(fail.text) != len(b) {
			t.Errorf("%x decodes to %+v", b, fail)
		}
		cutAnswer(b, nil, nil, nil, 0)
	})
}

// FuzzFrames lets a rank read what a neighbour may send in the rounds.
func FuzzFrames(f *testing.F) {
	f.Add(framed(frameFail, 0, (&failed{whyGone, 2, nil, "rank 2 failed"}).encode(maxReason)))
	f.Add(framed(frameBlocks, 1, pack([][]byte{[]byte("hi")})))
	f.Add(append(framed(frameBlocks, 1, pack([][]byte{nil})), framed(frameWord, 0, []byte{1, 0, 0, 0, 'x'})...))
	f.Add(framed(frameDone, 0, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fds[0])
		unix.Write(fds[1], b[:min(len(b), 4096)])
		unix.Close(fds[1])
		x := &rounds{meeting: &meeting{circle: circleOf(0, 2, 1), most: MaxBlob}, held: [][]byte{nil}}
		x.in = []*link{{of: x.meeting, peer: 1, s: &stream{fd: fds[0]}}}
		err = x.in[0].read(x.atMost(0))
		if err == nil {
			_, err = x.collect()
		}
		if err == nil && len(x.held) != 2 {
			t.Error("the end of the connection was not noticed")
		}
	})
}
