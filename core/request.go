package core

import (
	"slices"
	"sync"
	"time"
)

// Request is an operation that goes on beside its caller. What it asks for stands in the communicator's turn among the calls of
// others: whoever drives the turn moves it, the pump if nobody else does (pump.go).
//
//	Start ─► inbox ─► turn.queue or messages ─► over: done is closed, waiters and the callback are told
//	   └──► a job, where jobs are queued: behind them ─► inbox
type Request struct {
	comm   *Comm
	number uint64 // of the communicator's requests, from 1
	call   Call   // with copies of all that it points at but the buffers
	status Status
	out    *Status   // where the caller wants the status too, or nil
	began  time.Time // when it was started
	until  time.Time // when its own limit is over; zero: never

	msg     *message // of a message that is under way; under the hot lock
	verdict error    // how a message ends that is taken back; under the hot lock

	done chan struct{} // closed when it is over
	err  error         // how it ended; written before done is closed

	timer    *time.Timer     // of its own limit while it stands behind jobs, or nil
	admitted bool            // guarded by scheduler.mu: it is the pump's
	over     bool            // guarded by scheduler.mu
	watchers []chan struct{} // guarded by scheduler.mu: each is told once
	notify   func()          // guarded by scheduler.mu: the callback
}

// requests is what a communicator knows of its requests. All but the atomics of Comm is guarded by scheduler.mu.
type requests struct {
	open     map[*Request]struct{} // those that are not over
	last     uint64
	inbox    []*Request // started, and not yet in the turn
	cancels  []*Request
	admitted int // that are not over
	plain    int // of those: without a limit of their own
	ordered  int // of those: collectives, behind which small calls in C must not come
	pumping  bool
	calls    notifier
}

// Start begins an operation and returns at once. Its buffers are the library's until it is over.
func (c *Comm) Start(call *Call) (*Request, error) {
	if e := c.failure.Load(); e != nil {
		return nil, e
	}
	if c.blocking {
		if err := c.enter(); err != nil {
			return nil, err
		}
		defer c.leave()
	}
	if c.stage.Load() == made {
		if err := c.judge(call); err != nil {
			return nil, err
		}
	}
	r := c.newRequest(call)
	if c.enlist(r) {
		r.watchOver(call.Limit)
		schedule(&job{comms: []*Comm{c}, run: func() { c.admit(r) }})
	} else {
		c.admit(r)
	}
	return r, nil
}

func (c *Comm) newRequest(call *Call) *Request {
	keep := keepItems([]Item{{Call: call}})[0].Call
	r := &Request{comm: c, call: *keep, out: call.Status, began: time.Now(), done: make(chan struct{})}
	r.call.req, r.call.Status = r, &r.status
	if call.Limit > 0 {
		r.until = r.began.Add(call.Limit)
	}
	return r
}

// enlist numbers r and reports whether it must stand behind jobs.
func (c *Comm) enlist(r *Request) (behind bool) {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	q := &c.requests
	if q.open == nil {
		q.open = map[*Request]struct{}{}
	}
	q.last++
	r.number = q.last
	q.open[r] = struct{}{}
	return len(c.jobs) > 0 || c.stage.Load() == making
}

// admit puts r where the turn takes it from, and starts the pump unless it is on.
func (c *Comm) admit(r *Request) {
	if err := c.enter(); err != nil {
		c.complete(r, err)
		return
	}
	scheduler.mu.Lock()
	q := &c.requests
	if r.over { // the communicator has failed meanwhile
		scheduler.mu.Unlock()
		c.leave()
		return
	}
	launch := !q.pumping
	q.pumping = true
	q.inbox = append(q.inbox, r)
	r.count(q, 1)
	if !r.call.message() && c.blocking {
		c.queued.Store(true)
		c.hot.Open(false)
	}
	c.fresh.Store(true)
	scheduler.mu.Unlock()
	if launch {
		go c.pump() // which leaves
		return
	}
	c.ringSelf()
	c.leave()
}

// count adds r to the pump's books, or takes it out. The scheduler's lock is held.
func (r *Request) count(q *requests, n int) {
	r.admitted = n > 0
	q.admitted += n
	r.comm.open.Add(int32(n))
	if r.call.Limit == 0 {
		q.plain += n
	}
	if !r.call.message() {
		q.ordered += n
	}
}

// ringSelf wakes the threads of this rank that sleep on the communicator.
func (c *Comm) ringSelf() {
	if c.seg != nil {
		c.seg.Ring(c.seg.Self())
	}
}

// complete ends r, once.
func (c *Comm) complete(r *Request, err error) {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	c.finishRequest(r, err)
}

// finishRequest ends r, once. The scheduler's lock is held, so that callbacks stand in the order in which requests ended.
func (c *Comm) finishRequest(r *Request, err error) {
	if r.over {
		return
	}
	r.over, r.err = true, err
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.admitted {
		r.count(&c.requests, -1)
	}
	delete(c.requests.open, r)
	if r.out != nil && err == nil {
		*r.out = r.status
	}
	close(r.done)
	for _, w := range r.watchers {
		w <- struct{}{}
	}
	r.watchers = nil
	if r.notify != nil {
		c.requests.calls.add(r.notify)
	}
}

// failRequests ends all requests: the communicator has failed.
func (c *Comm) failRequests(err error) {
	scheduler.mu.Lock()
	list := c.openRequests()
	c.requests.inbox, c.requests.cancels = nil, nil
	scheduler.mu.Unlock()
	for _, r := range list {
		c.complete(r, err)
	}
}

// openRequests are those that are not over, the oldest first. The scheduler's lock is held.
func (c *Comm) openRequests() []*Request {
	list := make([]*Request, 0, len(c.requests.open))
	for r := range c.requests.open {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *Request) int { return int(a.number) - int(b.number) })
	return list
}

// lastRequest is the number of the last that was started.
func (c *Comm) lastRequest() uint64 {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	return c.requests.last
}

// drainRequests waits until the requests up to a number are over, or the communicator is closing.
func (c *Comm) drainRequests(last uint64) {
	scheduler.mu.Lock()
	list := c.openRequests()
	scheduler.mu.Unlock()
	for _, r := range list {
		if r.number > last {
			return
		}
		select {
		case <-r.done:
		case <-c.shut:
			return
		}
	}
}

// notifier makes the callbacks of a communicator, one after the other in the order in which requests ended, on a goroutine that is
// there only as long as there are some.
type notifier struct {
	mu    sync.Mutex
	queue []func() // guarded by mu
	on    bool     // guarded by mu
}

func (n *notifier) add(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue = append(n.queue, f)
	if !n.on {
		n.on = true
		go n.run()
	}
}

func (n *notifier) run() {
	for {
		n.mu.Lock()
		if len(n.queue) == 0 {
			n.on = false
			n.mu.Unlock()
			return
		}
		f := n.queue[0]
		n.queue = n.queue[1:]
		n.mu.Unlock()
		_ = guarded(func() error { defer unpin()(); f(); return nil })
	}
}
