package tcp

import (
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// What is set by OnBackground runs before the background reads, on the thread that then reads: a thread that is put somewhere reads
// there.
func TestBackgroundIsToldBeforeItReads(t *testing.T) {
	nodes := []*node{newNode(0, 2), newNode(1, 2)}
	var begun, read atomic.Int32
	nodes[1].net.OnBackground(func() { begun.Store(int32(unix.Gettid())) })
	nodes[1].OnControl(func(int, []byte) { read.Store(int32(unix.Gettid())) })
	for _, n := range nodes {
		t.Cleanup(func() { n.Close(0) })
	}
	lay(t, nodes, 0, 1, 0, pair)
	if err := nodes[0].Control(1, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	nodes[1].until(t, "message", func() bool { return read.Load() != 0 })
	if begun.Load() != read.Load() {
		t.Errorf("thread %d was told, thread %d has read", begun.Load(), read.Load())
	}
}
