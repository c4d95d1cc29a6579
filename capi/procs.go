package main

import (
	"runtime"
	"sync"
)

// GOMAXPROCS in the host's process is how many threads may be in the core at once. A rank that waits there keeps its place, and so
// does a thread that has just left, until Go's monitor takes it: with fewer places than threads each operation takes as long as the
// monitor sleeps, which is milliseconds. So there are always procsSpare more than threads that call, for the core's own. A change
// stops the world: places come by the double, and stay.
const (
	minProcs   = 16
	procsSpare = 4
)

// procs is GOMAXPROCS as makeRoom has set it.
var procs struct {
	sync.Mutex
	n int
}

// makeRoom has threads that call find a place each.
func makeRoom(threads int) {
	procs.Lock()
	defer procs.Unlock()
	if n := places(procs.n, threads); n != procs.n {
		procs.n = n
		runtime.GOMAXPROCS(n)
	}
}

// places is what GOMAXPROCS, now n, must be for so many threads.
func places(n, threads int) int {
	n = max(n, minProcs)
	for n < threads+procsSpare {
		n *= 2
	}
	return n
}
