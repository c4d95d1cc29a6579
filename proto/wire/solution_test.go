package wire

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func solution() Solution {
	return Solution{Width: 12.5, Orders: [32]byte{4: 7}, Micros: 99, Counts: []uint16{2, 1}, Packings: []Packing{{Bus: 40, Bound: 41,
		Rings: []PackedRing{{Weight: 25, Segments: []Segment{{-1, -1, []uint16{0, 2, 1}}}}, {Weight: 15, Segments: []Segment{{3, 0, nil}}}}}, {}}}
}

func TestSolutionRoundTrip(t *testing.T) {
	want := solution()
	whole := want.Append(nil)
	var got Solution
	if err := got.Decode(whole); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for n := range whole {
		if got.Decode(whole[:n]) == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(whole))
		}
	}
	if got.Decode(append(whole, 0)) == nil {
		t.Error("a byte too many was accepted")
	}
}

func FuzzSolution(f *testing.F) {
	s := solution()
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s, again Solution
		if s.Decode(b) != nil {
			return
		}
		if err := again.Decode(s.Append(nil)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(s, again); d != "" {
			t.Error(d)
		}
	})
}

func TestDescriptions(t *testing.T) {
	text := strings.Repeat("<system/>", 1000)
	b := PackText(text)
	if got, err := UnpackText(b, sha256.Sum256(b)); err != nil || got != text || len(b) > 200 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	b[len(b)/2]++
	if _, err := UnpackText(b, sha256.Sum256(PackText(text))); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a changed byte: %v", err)
	}
	bomb := PackText(strings.Repeat("x", MaxText+1))
	if _, err := UnpackText(bomb, sha256.Sum256(bomb)); err == nil || !strings.Contains(err.Error(), "unpacks to more") {
		t.Errorf("%d bytes of more text than may be: %v", len(bomb), err)
	}
}

// Any bytes that a peer has summed up right.
func FuzzDescription(f *testing.F) {
	f.Add(PackText("<system version=\"1\"/>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if text, err := UnpackText(b, sha256.Sum256(b)); err == nil && len(text) > MaxText {
			t.Errorf("%d bytes of text", len(text))
		}
	})
}
