package tcp

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/testkit"
)

// What is set by OnBackground runs before the background reads, on the thread that then reads: a thread that is put somewhere reads
// there, however often the goroutine has to let others run.
func TestBackgroundIsToldBeforeItReads(t *testing.T) {
	nodes := []*node{newNode(0, 2), newNode(1, 2)}
	var begun, heard atomic.Int32
	nodes[1].net.OnBackground(func() {
		begun.Store(int32(unix.Gettid()))
		for range 10 {
			runtime.Gosched()
		}
	})
	nodes[1].OnControl(func(_ int, b []byte) bool {
		if told, read := begun.Load(), int32(unix.Gettid()); told != read {
			t.Errorf("%s: thread %d was told, thread %d has read", b, told, read)
		}
		heard.Add(1)
		return true
	})
	for _, n := range nodes {
		t.Cleanup(func() { n.Close(0) })
	}
	lay(t, nodes, 0, 1, 0, pair)
	var over atomic.Bool
	var others sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		others.Go(func() {
			for !over.Load() {
				runtime.Gosched()
			}
		})
	}
	for k := range int32(1000) {
		if err := nodes[0].Control(1, fmt.Append(nil, "message ", k)); err != nil {
			t.Fatal(err)
		}
		nodes[1].until(t, "message", func() bool { return heard.Load() > k })
	}
	over.Store(true)
	others.Wait()
}

// A control message wakes the rank's thread only where its hearer asks for it, and the answer to one wakes nobody.
func TestControlWakesWhomItIsFor(t *testing.T) {
	for _, wakes := range []bool{false, true} {
		nodes := mesh(t, 2, loopback)
		var rings [2]atomic.Int32
		var heard atomic.Int32
		for r, d := range nodes {
			d.Take() // nobody reads meanwhile
			d.wake = func() { rings[r].Add(1) }
			d.onControl = func(int, []byte) bool { heard.Add(1); return wakes }
			d.Give()
		}
		if err := nodes[0].Control(1, []byte("a header")); err != nil {
			t.Fatal(err)
		}
		sender := nodes[0].links[1]
		testkit.Eventually(t, hang, "answer", func() bool { return heard.Load() == 1 && said(sender) })
		for _, d := range nodes {
			d.Take() // whoever has read has woken all by then
			d.Give()
		}
		if got, want := rings[1].Load() > 0, wakes; got != want || rings[0].Load() > 0 {
			t.Errorf("asked to wake %v: woken %v, sender %v", wakes, got, rings[0].Load() > 0)
		}
	}
}

// said reports whether all control messages that were sent have been heard.
func said(l *Link) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.peers {
		if !p.said() {
			return false
		}
	}
	return true
}
