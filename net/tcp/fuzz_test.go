package tcp

import (
	"bytes"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/proto"
)

func TestHeaderComesBackAsItWas(t *testing.T) {
	want := header{typ: frameData, kind: proto.Msg, channel: 63, length: MaxSlice,
		tag: proto.Tag{Lane: 1<<32 - 1, Seq: 1<<64 - 2, Hash: 1<<64 - 3}, seq: 1<<64 - 4, ack: 1<<64 - 5, route: 1<<64 - 6}
	var got header
	if bad := got.decode(encoded(want)); bad != "" || got != want {
		t.Errorf("decoded %+v (%s), want %+v", got, bad, want)
	}
}

// FuzzHeader checks that what decode accepts is within bounds and is encoded to the same bytes, but for those that are reserved.
func FuzzHeader(f *testing.F) {
	f.Add(encoded(header{typ: frameData, kind: proto.All, channel: 7, length: 100, tag: proto.Tag{Lane: 1, Seq: 2, Hash: 3}}))
	f.Add(encoded(header{typ: frameGoodbye}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < headerSize {
			return
		}
		var h header
		if h.decode(b) != "" {
			return
		}
		if h.kind > proto.Msg || h.channel >= MaxChannels || h.length > MaxSlice {
			t.Fatalf("accepted %+v", h)
		}
		if again := encoded(h); !bytes.Equal(again[:3], b[:3]) || !bytes.Equal(again[4:56], b[4:56]) {
			t.Fatalf("%x became %x", b[:headerSize], again)
		}
	})
}

// FuzzConnection sends bytes to a fabric in two pieces, then the end. Whatever they are, the peer is gone afterwards, for a reason
// that names it, or the rail has said goodbye, and what was delivered can be read.
func FuzzConnection(f *testing.F) {
	data := func(seq uint64, n int) []byte {
		return append(encoded(header{typ: frameData, channel: 1, seq: seq, length: uint32(n), route: route(1, 1, 0)}), make([]byte, n)...)
	}
	f.Add([]byte{}, 0)
	f.Add(append(data(0, 8), data(1, 5000)...), 70)
	f.Add(append(data(0, 0), encoded(header{typ: frameGoodbye})...), 64)
	f.Add(append(encoded(header{typ: frameControl, length: 3, route: route(1, 1, 0)}), "abc"...), 65)
	leave := encoded(header{typ: frameLeave, length: runBytes, route: 1, tag: proto.Tag{Lane: 1}})
	f.Add(append(leave, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 5)
	f.Add(append(encoded(header{typ: frameAnnounce, length: 3, route: 1, tag: proto.Tag{Lane: 1}}), "abc"...), 65)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		if len(b) > 64<<10 {
			return
		}
		cut = max(0, min(cut, len(b)))
		d := newNode(0, 2)
		defer d.Close(0)
		ours, theirs := pair(t)
		if err := d.Add(1, ours); err != nil {
			t.Fatal(err)
		}
		for _, part := range [][]byte{b[:cut], b[cut:]} {
			if _, err := unix.SendmsgN(theirs, part, nil, nil, unix.MSG_NOSIGNAL); err != nil {
				break // it has found the first part bad already
			}
		}
		_ = unix.Close(theirs)
		// The end of a rail that has said goodbye is nobody's news: the bell does not ring for it.
		var err error
		testkit.Eventually(t, hang, "end", func() bool {
			err = d.goneErr(1)
			return err != nil || !d.links[1].Live(0) && d.links[1].Lost() == nil
		})
		if err == nil {
			return
		}
		var gone *GoneError
		var bad *FrameError
		if !(errors.As(err, &gone) && gone.Rank == 1) && !(errors.As(err, &bad) && bad.Rank == 1) {
			t.Fatalf("gone for %v", err)
		}
		in := inOf(t, d, proto.Pair, 1, 1)
		for {
			p, n, err := in.Peek()
			if err != nil && !errors.Is(err, proto.ErrTag) {
				break
			}
			if err == nil && (p == 0 || n > MaxSlice) {
				t.Fatalf("Peek = %v, %d", p, n)
			}
			in.Release()
		}
	})
}
