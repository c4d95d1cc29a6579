package registration

import (
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/device/host"
	"hccl.dev/hccl/internal/log"
)

// change is what became of memory.
type change struct {
	span
	how How
}

// notice is who tells what becomes of watched memory: the kernel.
type notice interface {
	// start is called before all else, until it succeeds; stop when settled has failed.
	start() error
	stop()
	// watch has changes of s told from now on; unwatch ends that.
	watch(s span) error
	unwatch(s span)
	// settled reports whether all changes that were begun before the call are there to be taken. An error: no change is told any more.
	settled() (bool, error)
	// news reports whether there are changes to take, and wait returns when there are, or false: never again.
	news() bool
	wait() bool
	// take gives do all changes that are there, in their order.
	take(do func(change))
}

// watch is what all caches of a process share: memory is watched once for all.
type watch struct {
	notice notice
	on     atomic.Bool // changes are told

	starting sync.Mutex
	refused  bool // guarded by starting: there is no notice here, and never will be

	mu     sync.Mutex // guards what follows, all that caches and regions say it guards, and notice.watch, unwatch and take
	caches []*Cache
}

var process = watch{notice: new(kernel)}

// patience is how often current asks: less than a millisecond on a machine that is not crowded. The thread that makes a change goes on
// as soon as a processor is free for the reader and for itself.
const patience = 100

// current reports whether all that had been done to watched memory before the call has been acted upon. Where threads change watched
// memory without a pause it may be false for a while, where there is no notice it is so for ever: then what a cache finds is not to be
// believed.
func (w *watch) current() bool {
	if !w.on.Load() && !w.begin() {
		return false
	}
	for range patience {
		settled, err := w.notice.settled()
		if err != nil {
			w.stop(err)
			return false
		}
		if settled {
			if w.notice.news() {
				w.act()
			}
			return true
		}
		yield()
	}
	return false
}

func yield() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// begin has the kernel tell changes, from the first Get on.
func (w *watch) begin() bool {
	w.starting.Lock()
	defer w.starting.Unlock()
	if w.on.Load() || w.refused {
		return w.on.Load()
	}
	if err := w.notice.start(); err != nil {
		w.refused = !passing(err)
		log.InfoOnce(log.Reg, "registration: start", "memory is registered for one use only, for nothing would tell when it is freed: %v", err)
		return false
	}
	w.on.Store(true)
	go w.listen()
	return true
}

// passing reports whether there may be what lacked when it is asked for again.
func passing(err error) bool {
	for _, e := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// listen acts upon changes while nobody calls Get: pages of freed memory go back to the system, and who holds it is told.
func (w *watch) listen() {
	for w.notice.wait() {
		w.act()
	}
}

// stop is for the day when changes are told no more: somebody has closed the descriptor. Nothing that was kept is found again.
func (w *watch) stop(err error) {
	w.starting.Lock()
	defer w.starting.Unlock()
	if !w.on.Load() {
		return
	}
	w.on.Store(false)
	w.refused = true
	w.notice.stop()
	log.Warn("memory is registered for one use only from here on: the kernel tells no more when it is freed: %v", err)
	var out dropped
	w.mu.Lock()
	for _, c := range w.caches {
		c.lose(change{span: everything}, &out, nil)
	}
	w.mu.Unlock()
	out.deregister()
}

// act takes the changes and has the caches act upon them.
func (w *watch) act() {
	var out dropped
	var tell []func()
	w.mu.Lock()
	w.notice.take(func(ch change) {
		for _, c := range w.caches {
			c.lose(ch, &out, &tell)
		}
	})
	w.mu.Unlock()
	out.deregister()
	for _, t := range tell {
		t()
	}
}

// huge are the page sizes of hugetlbfs, whose memory is watched in whole pages of its own.
var huge = []uint64{2 << 20, 1 << 30}

// start watches a region to be, which may have to be larger for that. mu is held.
func (w *watch) start(s span) (span, error) {
	err := w.notice.watch(s)
	if !errors.Is(err, unix.EINVAL) || !host.ValidRange(device.Ptr(s.start), s.size()) {
		return s, err
	}
	for _, size := range huge {
		if wider := s.rounded(size); w.notice.watch(wider) == nil {
			return wider, nil
		}
	}
	return s, err
}

// end stops watching what r alone had. mu is held.
func (w *watch) end(r *Region) {
	rest := r.watched()
	for _, c := range w.caches {
		for _, e := range c.found.overlapping(r.span) {
			rest = without(rest, e.span)
		}
		for o := range c.retired {
			if !o.overlaps(r.span) {
				continue
			}
			for _, s := range o.watched() {
				rest = without(rest, s)
			}
		}
	}
	for _, s := range rest {
		w.notice.unwatch(s)
	}
}

// watched is what is left of a region's memory. mu is held.
func (r *Region) watched() []span {
	rest := []span{r.span}
	for _, s := range r.gone {
		rest = without(rest, s)
	}
	return rest
}
