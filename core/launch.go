package core

import (
	"encoding/binary"
	"slices"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/log"
)

// Calls on streams. A call, or a whole group, becomes one job that stands in the queues of its streams and of its communicators,
// and its caller goes on at once; where the group holds calls on the NULL stream of blocking communicators too, the caller waits
// for all of it. Arguments that are wrong are refused before anything is queued.

// streamsOf lists the streams that items name, each once; nil where all is on the NULL stream.
func streamsOf(items []Item) (list []*Stream) {
	for i := range items {
		if c := items[i].Call; c != nil && c.Stream != nil && !slices.Contains(list, c.Stream) {
			list = append(list, c.Stream)
		}
	}
	return list
}

// launch queues items, which concern comms and streams.
func launch(comms []*Comm, streams []*Stream, items []Item) error {
	in, err := enterAll(comms)
	defer leaveAll(in)
	if err != nil {
		return err
	}
	if err := refuse(items); err != nil {
		return err
	}
	answer, wait := answerOf(items)
	announceSplits(items, wait)
	keep := keepItems(items)
	j := &job{comms: comms, streams: streams, pending: answer != nil}
	j.run = func() { j.calls(comms, keep, wait) }
	if !wait {
		schedule(j)
		return answer
	}
	j.lost = make(chan struct{})
	schedule(j)
	return j.await(items, keep)
}

// enterAll counts the caller into the blocking communicators, so that none is released before its job is queued; the others may
// still be being made. It returns those that are to be left again.
func enterAll(comms []*Comm) (in []*Comm, err error) {
	for _, c := range comms {
		if e := c.failure.Load(); e != nil {
			return in, e
		}
		if !c.blocking {
			continue
		}
		if err := c.enter(); err != nil {
			return in, err
		}
		in = append(in, c)
	}
	return in, nil
}

func leaveAll(comms []*Comm) {
	for _, c := range comms {
		c.leave()
	}
}

// refuse judges the calls of communicators that are made. One that is still being made finds the fault when the call's turn comes.
func refuse(items []Item) error {
	for i := range items {
		it := &items[i]
		if it.Call == nil || it.Comm.stage.Load() != made {
			continue
		}
		if it.Err = it.Comm.judge(it.Call); it.Err != nil {
			return it.Err
		}
	}
	return nil
}

// answerOf is what the call returns if it does not wait, and whether it does: for the results of calls on the NULL stream, and of
// splits, of blocking communicators.
func answerOf(items []Item) (answer error, wait bool) {
	for i := range items {
		it := &items[i]
		switch {
		case it.Call != nil && it.Call.Stream != nil:
		case it.Init != nil:
			if it.Err != nil {
				answer = it.Err
			}
		case it.Comm.blocking:
			return nil, true
		default:
			answer = errInProgress
		}
	}
	return answer, false
}

// calls runs the calls of a job. Errors are kept by the streams, unless a caller waits for them.
func (j *job) calls(comms []*Comm, items []Item, awaited bool) {
	for i := range items {
		if c := items[i].Call; c != nil && c.Factor != 0 {
			c.readFactor()
		}
	}
	b := &batch{aside: !awaited}
	if awaited {
		_ = runBatch(b, comms, items)
		return
	}
	if err := runKept(b, comms, items); err != nil {
		for _, s := range j.streams {
			s.fail(err)
		}
	}
}

// readFactor reads the factor of a scaled sum where the program has left it.
func (c *Call) readFactor() {
	var bits [8]byte
	copy(bits[:], device.Bytes(c.Factor, c.Type.Size()))
	c.Scale = binary.LittleEndian.Uint64(bits[:])
}

// await waits for a job whose items are kept, and copies how they ended. If the communicators go while the job waits for a stream,
// it does not wait for that.
func (j *job) await(items, kept []Item) error {
	select {
	case <-j.done:
		for i := range items {
			items[i].Err = kept[i].Err
		}
	case <-j.lost:
		for i := range items {
			if items[i].Init == nil {
				items[i].Err = failf(InvalidUsage, "the communicator was aborted while a group of it waited for a stream")
			}
		}
	}
	return firstError(items)
}

// direct reports whether small calls may be done in C, which traces nothing.
func (c *Comm) direct() bool {
	return c.net == nil && c.n > 1 && c.free() && c.blocking && !log.On(log.LevelTrace, log.Call)
}

// reopen gives small calls back to C if no job and no collective of a request is queued any more. The hot lock is held. break_ closes
// the path for ever: it keeps the failure first, so either it sees this opening or this sees the failure.
func (c *Comm) reopen() {
	scheduler.mu.Lock()
	if len(c.jobs) == 0 && c.requests.ordered == 0 {
		c.queued.Store(false)
		c.hot.Open(c.direct())
	}
	scheduler.mu.Unlock()
	if c.failure.Load() != nil {
		c.hot.Open(false)
	}
}
