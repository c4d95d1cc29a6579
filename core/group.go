package core

import (
	"slices"
	"sync"
	"unsafe"

	"hccl.dev/hccl/internal/coll"
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
			it.Err = err
			continue
		}
		j := &job{comms: []*Comm{c}, run: func() error { return c.make(it.Init) }}
		if !it.Init.Blocking {
			it.Err = errInProgress
			schedule(j)
			continue
		}
		wg.Go(func() { it.Err = j.run() })
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
	j := &job{comms: comms, run: func() error { return runBatch(comms, items) }}
	if !slices.ContainsFunc(comms, func(c *Comm) bool { return c.blocking }) {
		for _, c := range comms {
			if e := c.failure.Load(); e != nil {
				return e
			}
		}
		keep := keepItems(items)
		j.run = func() error { return runBatch(comms, keep) }
		schedule(j)
		return errInProgress
	}
	for _, c := range comms {
		c.drain()
	}
	return j.run()
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

// runBatch runs the calls of items to their end and makes the communicators that splits ask for.
func runBatch(comms []*Comm, items []Item) error {
	b := &batch{}
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
		b.comms = append(b.comms, c)
	}
	for i := range items {
		if it := &items[i]; it.Comm != nil && it.Err == nil && it.Init == nil {
			if it.Err = it.queue(b); it.Err != nil && ResultOf(it.Err) != InvalidArgument {
				it.Comm.drop(it.Err)
			}
		}
	}
	err := b.drive()
	for _, c := range b.comms {
		c.hot.Unlock()
		c.leave()
	}
	if e := firstError(items); err == nil {
		err = e
	}
	if err != nil {
		closeInboxes(items)
		return err
	}
	return finishSplits(items)
}

// queue puts the item's call, or the first half of its split, into its communicator's turn.
func (it *Item) queue(b *batch) error {
	if it.Split == nil {
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

func setErr(items []Item, c *Comm, err error) {
	for i := range items {
		if items[i].Comm == c {
			items[i].Err = err
		}
	}
}

// Do runs one call on a blocking communicator, on the calling thread and without allocating; Enqueue is for everything else.
// origin identifies the caller's item where the C path may have left it pending.
func (c *Comm) Do(call *Call, origin unsafe.Pointer) error {
	if !c.blocking || c.busy() {
		kept := *call
		return runCalls([]Item{{Comm: c, Call: &kept}})
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.leave()
	if e := c.failure.Load(); e != nil {
		c.abandon(origin)
		return e
	}
	if origin != nil && c.hot.Resume(origin) {
		c.resume(call)
	} else {
		c.hot.Lock()
		if err := c.add(call); err != nil {
			c.turn.clear()
			c.hot.Unlock()
			return err
		}
	}
	err := c.solo.drive()
	c.hot.Unlock()
	return err
}

// resume takes over an operation that the C path has begun: its number is taken, its header and its mail are posted.
func (c *Comm) resume(call *Call) {
	t := &c.turn
	t.queue = append(t.queue, *call)
	cur := &t.cur
	cur.call, cur.mail, cur.header = &t.queue[0], true, header(call, 0, 0)
	cur.seq, _ = c.hot.Pending()
	cur.header.Seq = cur.seq
	t.next, t.on = 1, true
}

// abandon lets go of an operation that the C path left pending on a communicator that is broken.
func (c *Comm) abandon(origin unsafe.Pointer) {
	if origin != nil && c.hot.Resume(origin) {
		c.hot.Drop()
		c.hot.Unlock()
	}
}

// splitBytes is what a rank tells in the first half of a split.
const splitBytes = 40

func splitCall(send, recv []byte) *Call {
	return &Call{Func: coll.Split, Type: coll.Uint8, Count: splitBytes, Send: bytesPtr(send), Recv: bytesPtr(recv)}
}
