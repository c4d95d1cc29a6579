package core

import (
	"slices"
	"sync"
	"time"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/internal/log"
)

// Item is one thing that a call, or a group of calls, asks for. Exactly one of Init, Split and Call is set.
type Item struct {
	Comm  *Comm // of Call and Split
	Call  *Call
	Init  *InitSpec
	Split *SplitSpec
	Err   error // how it ended; errInProgress where it was only started
}

// errInProgress is the answer of a call that was only started: not a failure.
var errInProgress = &Error{Result: InProgress, Text: "the operation is in progress"}

// Enqueue runs items, all of them as one group, and returns the first error. Where every communicator concerned is non-blocking,
// they are only started, and errInProgress is returned.
//
//	init, init, ...   each on a goroutine of its own: ranks that one thread holds meet each other
//	calls, splits     one batch on the calling thread; the second half of a split follows the batch
func Enqueue(items []Item) error {
	if err := runInits(items); err != nil && ResultOf(err) != InProgress {
		return err
	}
	return runCalls(items)
}

func runInits(items []Item) error {
	var wg sync.WaitGroup
	for i := range items {
		it := &items[i]
		if it.Init == nil {
			continue
		}
		c, err := newComm(it.Init)
		if err != nil {
			it.Init.unable(err)
			it.Err = err
			continue
		}
		if !it.Init.Blocking {
			spec := it.Init
			it.Err = errInProgress
			c.inside.Add(1) // an end waits for the making, also before it begins
			schedule(&job{comms: []*Comm{c}, pending: true, run: func() {
				defer c.leave()
				_ = c.make(spec) // an error is c's failure
			}})
			continue
		}
		wg.Go(func() { it.Err = c.make(it.Init) })
	}
	wg.Wait()
	return firstError(items)
}

func firstError(items []Item) error {
	var progress error
	for i := range items {
		switch e := items[i].Err; {
		case e == nil:
		case ResultOf(e) == InProgress:
			progress = e
		default:
			return e
		}
	}
	return progress
}

// runCalls runs the calls and splits among items.
func runCalls(items []Item) error {
	comms := concerned(items)
	if len(comms) == 0 {
		return firstError(items)
	}
	if streams := streamsOf(items); streams != nil {
		return launch(comms, streams, items)
	}
	if !slices.ContainsFunc(comms, func(c *Comm) bool { return c.blocking }) {
		for _, c := range comms {
			if e := c.failure.Load(); e != nil {
				return e
			}
		}
		announceSplits(items, false)
		keep := keepItems(items)
		schedule(&job{comms: comms, pending: true, run: func() { runKept(&batch{}, comms, keep) }})
		return errInProgress
	}
	for _, c := range comms {
		c.drain()
	}
	announceSplits(items, true)
	return runBatch(&batch{}, comms, items)
}

// runKept runs the calls of a job. No call is there any more to return their errors, so each becomes that of its communicator, also
// where the call alone was refused. A stream can tell of a receive that only ran out of time.
func runKept(b *batch, comms []*Comm, items []Item) error {
	err := runBatch(b, comms, items)
	for i := range items {
		it := &items[i]
		if it.Err != nil && it.Call != nil && !it.Comm.closing.Load() && (it.Call.Stream == nil || ResultOf(it.Err) != Timeout) {
			it.Comm.break_(it.Err)
		}
	}
	return err
}

// keepItems copies what the caller may free or reuse once the call has returned.
func keepItems(items []Item) []Item {
	keep := slices.Clone(items)
	for i := range keep {
		if keep[i].Call != nil {
			c := *keep[i].Call
			c.SendCounts, c.SendDispls = slices.Clone(c.SendCounts), slices.Clone(c.SendDispls)
			c.RecvCounts, c.RecvDispls = slices.Clone(c.RecvCounts), slices.Clone(c.RecvDispls)
			keep[i].Call = &c
		}
	}
	return keep
}

// concerned lists the communicators of calls and splits, each once, in the order in which they are locked.
func concerned(items []Item) []*Comm {
	var comms []*Comm
	for i := range items {
		if c := items[i].Comm; c != nil && items[i].Init == nil && !slices.Contains(comms, c) {
			comms = append(comms, c)
		}
	}
	slices.SortFunc(comms, func(a, b *Comm) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return comms
}

// runBatch runs the calls of items to their end and makes the communicators that splits ask for. One communicator's failure is not
// that of the others.
func runBatch(b *batch, comms []*Comm, items []Item) error {
	for _, c := range comms {
		err := c.enter()
		if e := c.failure.Load(); err == nil && e != nil {
			c.leave()
			err = e
		}
		if err != nil {
			setErr(items, c, err)
			continue
		}
		c.hot.Lock()
		if c.fresh.Load() { // was started before
			c.takeIn()
		}
		b.comms = append(b.comms, c)
	}
	for i := range items {
		if it := &items[i]; it.Comm != nil && it.Err == nil && it.Init == nil {
			if it.Err = it.queue(b); it.Err != nil && ResultOf(it.Err) != InvalidArgument {
				it.Comm.drop(it.Err)
				it.Err = it.Comm.turn.err
			}
		}
	}
	_ = b.drive()
	for _, f := range b.failed {
		setErr(items, f.comm, f.err)
	}
	for _, c := range b.comms {
		c.hot.Unlock()
		c.passOn()
		c.leave()
	}
	finishSplits(items)
	return firstError(items)
}

// queue puts the item's call, or the first half of its split, into its communicator's turn.
func (it *Item) queue(b *batch) error {
	if it.Split == nil {
		b.bound(it.Call.Limit)
		if log.On(log.LevelTrace, log.Call) {
			it.Comm.trace(it.Call)
		}
		return it.Comm.add(it.Call)
	}
	if b.limit == 0 {
		b.limit = it.Comm.settings.InitTimeout
	}
	call, err := it.Split.exchange(it.Comm)
	if err != nil {
		return err
	}
	return it.Comm.add(call)
}

// setErr gives the items of c that have no error of their own the communicator's.
func setErr(items []Item, c *Comm, err error) {
	for i := range items {
		if items[i].Comm == c && items[i].Err == nil {
			items[i].Err = err
		}
	}
}

// Do runs one call on a blocking communicator, on the calling thread and without allocating; Enqueue is for everything else.
// origin identifies the caller's item where the C path may have left it pending.
func (c *Comm) Do(call *Call, origin uintptr) error {
	if !c.blocking || call.Stream != nil {
		kept := *call
		return runCalls([]Item{{Comm: c, Call: &kept}})
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	pending := c.hot.Claim(origin)
	if c.queued.Load() && !pending {
		c.drain()
	}
	if e := c.failure.Load(); e != nil {
		if pending {
			c.abandon()
		}
		return e
	}
	if log.On(log.LevelTrace, log.Call) {
		c.trace(call)
	}
	if pending {
		c.resume(call)
	} else {
		c.hot.Lock()
		if c.fresh.Load() { // was started before
			c.takeIn()
		}
		if c.queued.Load() {
			c.reopen()
		}
		err := c.add(call)
		if err != nil && ResultOf(err) == InvalidArgument { // refused, and nothing has begun
			c.turn.clear()
			c.hot.Unlock()
			return err
		}
		if err != nil {
			c.drop(err)
		}
	}
	c.solo.bound(call.Limit)
	err := c.solo.drive()
	c.solo.limit, c.solo.until = 0, time.Time{}
	c.hot.Unlock()
	c.passOn()
	return err
}

// resume takes over an operation that the C path has begun: its number is taken, its header and its mail are posted.
func (c *Comm) resume(call *Call) {
	t := &c.turn
	t.queue = append(t.queue, *call)
	cur := &t.cur
	cur.call, cur.mail, cur.header = &t.queue[len(t.queue)-1], true, header(call, 0, 0)
	cur.seq, _ = c.hot.Pending()
	cur.header.Seq = cur.seq
	t.next, t.left, t.on = len(t.queue), 1, true
}

// abandon lets go of an operation that the C path left pending on a communicator that is broken, or ends.
func (c *Comm) abandon() {
	c.hot.Drop()
	c.hot.Unlock()
}

// splitBytes is what a rank tells in the first half of a split.
const splitBytes = 40

func splitCall(send, recv []byte) *Call {
	return &Call{Func: coll.Split, Type: coll.Uint8, Count: splitBytes, Send: bytesPtr(send), Recv: bytesPtr(recv)}
}
