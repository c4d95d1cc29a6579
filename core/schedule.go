package core

import (
	"slices"
	"sync"
)

// job is a batch of non-blocking communicators, or the making of one. Jobs of one communicator run in the order in which they were
// scheduled; a job that concerns several waits until it is first on all of them. It keeps its errors itself: nobody waits for it.
type job struct {
	comms   []*Comm // guarded by scheduler.mu: those in whose queues it stands
	run     func()
	running bool // guarded by scheduler.mu
}

// scheduler guards the queues of all communicators at once, since a job may stand in several.
var scheduler struct {
	mu      sync.Mutex
	waiters []chan struct{} // guarded by mu: closed at the next change of a queue
}

// schedule queues j on all its communicators and starts it when its turn has come.
func schedule(j *job) {
	scheduler.mu.Lock()
	for _, c := range j.comms {
		c.jobs = append(c.jobs, j)
	}
	j.startIfFirst()
	scheduler.mu.Unlock()
}

// startIfFirst starts j if nothing is before it. The scheduler's lock is held.
func (j *job) startIfFirst() {
	for _, c := range j.comms {
		if c.jobs[0] != j {
			return
		}
	}
	if !j.running {
		j.running = true
		go j.work()
	}
}

// work runs j and starts the jobs that it held up.
func (j *job) work() {
	j.run()
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	for _, c := range j.comms {
		c.jobs = c.jobs[1:]
	}
	for _, c := range j.comms {
		if len(c.jobs) > 0 {
			c.jobs[0].startIfFirst()
		}
	}
	queuesChanged()
}

// queuesChanged wakes those who drain. The scheduler's lock is held.
func queuesChanged() {
	for _, w := range scheduler.waiters {
		close(w)
	}
	scheduler.waiters = nil
}

// withdraw takes a communicator that is closing out of all jobs that have not begun: they may wait for the jobs of others, and must
// not hold up its end. They still run for the others when their turn comes; for this one they fail.
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
		j.comms = slices.DeleteFunc(slices.Clone(j.comms), func(x *Comm) bool { return x == c })
		j.startIfFirst()
	}
	queuesChanged()
}

// busy reports whether jobs are queued or running.
func (c *Comm) busy() bool {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	return len(c.jobs) > 0
}

// drain waits until the jobs that are queued now are done, or the communicator is closing.
func (c *Comm) drain() {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	if len(c.jobs) == 0 {
		return
	}
	for last := c.jobs[len(c.jobs)-1]; slices.Contains(c.jobs, last) && !c.closing.Load(); {
		w := make(chan struct{})
		scheduler.waiters = append(scheduler.waiters, w)
		scheduler.mu.Unlock()
		<-w
		scheduler.mu.Lock()
	}
}
