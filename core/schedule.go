package core

import (
	"slices"
	"sync"
)

// job is what runs later, on a goroutine: calls of non-blocking communicators or on streams, the making of a communicator, or
// something that a stream alone is asked for. It stands in the queue of every communicator and stream that it concerns, and runs
// once it is first in all of them: so calls keep their order on each, whatever else goes on beside them.
//
//	communicator A   1 ── 3            job 3 is on A and on stream t: it waits for 1 and 2, and holds up 4 and 5
//	stream t         2 ── 3 ── 4
//	communicator B            5 ...    behind 4
type job struct {
	comms   []*Comm   // guarded by scheduler.mu: those in whose queues it stands
	streams []*Stream // the same, but they never change
	run     func()
	pending bool          // its call has returned ncclInProgress, and ncclCommGetAsyncError says so until it has run
	done    chan struct{} // closed once it has run; made by schedule
	lost    chan struct{} // closed if all its communicators go before it has begun; nil where nobody waits
	running bool          // guarded by scheduler.mu
}

// scheduler guards all queues at once, since a job may stand in several.
var scheduler struct{ mu sync.Mutex }

// schedule queues j and starts it when its turn has come. The caller is inside the blocking communicators of j, whose C path is
// closed until the queue is empty: small calls must not overtake it.
func schedule(j *job) {
	j.done = make(chan struct{})
	scheduler.mu.Lock()
	for _, c := range j.comms {
		c.push(j)
		if c.blocking {
			c.queued.Store(true)
			c.hot.Open(false)
		}
	}
	for _, s := range j.streams {
		s.jobs = append(s.jobs, j)
	}
	start := j.begins()
	scheduler.mu.Unlock()
	if start {
		go j.work()
	}
}

// begins reports whether j is to start now: nothing is before it, and it has not been started. The scheduler's lock is held.
func (j *job) begins() bool {
	for _, c := range j.comms {
		if c.jobs[0] != j {
			return false
		}
	}
	for _, s := range j.streams {
		if s.jobs[0] != j {
			return false
		}
	}
	before := j.running
	j.running = true
	return !before
}

// work runs j and then the jobs that it held up: one of them on this goroutine, which spares a hand-over, the others on their own.
func (j *job) work() {
	OnTime()
	pin()
	for j != nil {
		if err := guarded(func() error { j.run(); return nil }); err != nil {
			j.fail(err)
		}
		next := j.finish()
		j = nil
		for k, n := range next {
			if k == 0 {
				j = n
			} else {
				go n.work()
			}
		}
	}
}

// fail makes a panic the error of all that j concerns.
func (j *job) fail(err error) {
	scheduler.mu.Lock()
	comms := j.comms
	scheduler.mu.Unlock()
	for _, c := range comms {
		c.break_(err)
	}
	for _, s := range j.streams {
		s.fail(err)
	}
}

// finish takes j out of its queues and returns the jobs that begin now.
func (j *job) finish() (next []*job) {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	for _, c := range j.comms {
		c.jobs = pop(c.jobs)
		c.forget(j)
	}
	for _, s := range j.streams {
		s.jobs = pop(s.jobs)
	}
	look := func(queue []*job) {
		if len(queue) > 0 && queue[0].begins() {
			next = append(next, queue[0])
		}
	}
	for _, c := range j.comms {
		look(c.jobs)
	}
	for _, s := range j.streams {
		look(s.jobs)
	}
	close(j.done)
	return next
}

// pop removes the first job, and the last reference of the queue to it.
func pop(queue []*job) []*job {
	queue[0] = nil
	return queue[1:]
}

// push and forget keep the queue's books. The scheduler's lock is held.
func (c *Comm) push(j *job) {
	c.jobs = append(c.jobs, j)
	if j.pending {
		c.pending++
	}
}

func (c *Comm) forget(j *job) {
	if j.pending {
		c.pending--
	}
}

// withdraw takes a communicator that is closing out of all jobs that have not begun: they may wait for the jobs of others, and must
// not hold up its end. They still run for the others when their turn comes; for this one they fail. A call that
// waits for a job which has lost all its communicators is let go.
func (c *Comm) withdraw() {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	keep := 0
	if len(c.jobs) > 0 && c.jobs[0].running {
		keep = 1
	}
	gone := c.jobs[keep:]
	c.jobs = c.jobs[:keep:keep]
	for _, j := range gone {
		c.forget(j)
		j.comms = slices.DeleteFunc(slices.Clone(j.comms), func(x *Comm) bool { return x == c })
		if j.begins() {
			go j.work()
		} else if len(j.comms) == 0 && j.lost != nil {
			close(j.lost)
		}
	}
}

// busy reports whether something goes on whose call has returned ncclInProgress.
func (c *Comm) busy() bool {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	return c.pending > 0
}

// drain waits until the jobs that are queued now are done, or the communicator is closing.
func (c *Comm) drain() {
	scheduler.mu.Lock()
	var last *job
	if len(c.jobs) > 0 {
		last = c.jobs[len(c.jobs)-1]
	}
	scheduler.mu.Unlock()
	if last == nil {
		return
	}
	select {
	case <-last.done:
	case <-c.shut:
	}
}
