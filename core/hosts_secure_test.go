package core

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"hccl.dev/hccl/internal/testkit"
	"hccl.dev/hccl/internal/testkit/netns"
)

// Whatever way a connection between two hosts comes about, nothing of what ranks send can be read on any cable if they have a key: the
// first one, at once or when it is needed, further rails, and those that come back after a rest, asked for by either end.
func TestConnectionsOfEveryKindAreSealed(t *testing.T) {
	const clear = "HCCL_ENCRYPTION_KEY_FILE="
	key := sealedBy(t)
	for name, c := range map[string]struct{ key, connects string }{
		"in clear":    {clear, "1"}, // so that this test is known to see what can be read
		"at once":     {key, "1"},
		"when needed": {key, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			readable := watched(t, "HCCL_PRECONNECT="+c.connects, "HCCL_NET_IDLE=0.2", c.key)
			if want := c.key == clear; readable != [2]bool{want, want} {
				t.Errorf("what crosses each rail can be read: %v", readable)
			}
		})
	}
}

// sealedBy makes a key and returns the setting that names it.
func sealedBy(t *testing.T) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("a key for all ranks, of many bytes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "HCCL_ENCRYPTION_KEY_FILE=" + key
}

// watched has two ranks on two hosts with two rails connect again and again, and reports for each rail whether frames could be read.
func watched(t *testing.T, env ...string) (readable [2]bool) {
	l, ranks := pooled(t, 2, env...)
	second := l.Rail()
	captures := []*netns.Capture{l.Capture(0, 0), l.Capture(0, second)}
	asks(t, ranks, "make")
	for range 2 {
		both := func() bool { n := asks(t, ranks, "sum"); return n[0] >= 2 }
		testkit.Eventually(t, patience, "both rails", both)
		testkit.Eventually(t, patience, "end of the connections", func() bool { return asks(t, ranks, "look") == [2]int{} })
	}
	asks(t, ranks, "make")
	disperse(t, ranks)
	for rail, c := range captures {
		for _, packet := range c.Stop() {
			readable[rail] = readable[rail] || bytes.Contains(packet, goodbye) || bytes.Contains(packet, slice)
		}
	}
	return readable
}

// How frames of net/tcp begin: the one by which each rail goes to rest, and a slice for all ranks on channel 0.
var goodbye, slice = []byte{5, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []byte{5, 1, 1, 0, 0, 0, 0, 0}
