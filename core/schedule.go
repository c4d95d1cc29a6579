package core

import (
	"slices"
	"sync"
)

// job is a batch of non-blocking communicators, or the making of one. Jobs of one communicator run in the order in which they were
// scheduled; a job that concerns several waits until it is first on all of them.
type job struct {
	comms []*Comm
	run   func() error
	done  chan struct{} // made when somebody waits
}

var scheduler struct{ mu sync.Mutex } // guards Comm.jobs of all communicators and job.done

// schedule queues j on all its communicators and starts it when its turn has come.
func schedule(j *job) {
	scheduler.mu.Lock()
	for _, c := range j.comms {
		c.jobs = append(c.jobs, j)
	}
	start := j.first()
	scheduler.mu.Unlock()
	if start {
		go j.work()
	}
}

// first reports whether nothing is before j. The scheduler's lock is held.
func (j *job) first() bool {
	for _, c := range j.comms {
		if c.jobs[0] != j {
			return false
		}
	}
	return true
}

// work runs j and starts the jobs that it held up.
func (j *job) work() {
	if err := j.run(); err != nil && ResultOf(err) != InProgress {
		for _, c := range j.comms {
			c.remember(err)
		}
	}
	scheduler.mu.Lock()
	var next []*job
	for _, c := range j.comms {
		c.jobs = c.jobs[1:]
	}
	for _, c := range j.comms {
		if len(c.jobs) > 0 && c.jobs[0].first() && !slices.Contains(next, c.jobs[0]) {
			next = append(next, c.jobs[0])
		}
	}
	if j.done != nil {
		close(j.done)
	}
	scheduler.mu.Unlock()
	for _, n := range next {
		go n.work()
	}
}

// busy reports whether jobs are queued or running.
func (c *Comm) busy() bool {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	return len(c.jobs) > 0
}

// drain waits until the jobs that are queued now are done. Abort ends them, so it ends this wait too.
func (c *Comm) drain() {
	scheduler.mu.Lock()
	if len(c.jobs) == 0 {
		scheduler.mu.Unlock()
		return
	}
	last := c.jobs[len(c.jobs)-1]
	if last.done == nil {
		last.done = make(chan struct{})
	}
	scheduler.mu.Unlock()
	<-last.done
}

// remember keeps the error of a job that nobody waits for: it is the communicator's, also where the call alone was refused, since
// no call is there any more to return it.
func (c *Comm) remember(err error) { c.break_(err) }
