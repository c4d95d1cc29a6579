package tcp

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
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
	nodes[1].OnControl(func(_ int, b []byte) {
		if told, read := begun.Load(), int32(unix.Gettid()); told != read {
			t.Errorf("%s: thread %d was told, thread %d has read", b, told, read)
		}
		heard.Add(1)
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
