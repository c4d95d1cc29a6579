package core

import (
	"errors"
	"slices"
	"time"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/shm"
	"hccl.dev/hccl/shm/fast"
)

// turn is what one thread does on a communicator while it holds the lock: collectives one after the other, messages beside them.
type turn struct {
	queue []Call     // collectives, in call order
	next  int        // of queue
	live  []*message // of the batch that has the turn
	left  int        // collectives of that batch that are not finished; the others are of requests
	cur   collective
	on    bool // cur is running
	err   error
	news  time.Time     // when this rank last heard that another went; more may follow
	late  error         // receives ran out of time before a message met them; nothing is broken
	held  error         // stands still with it: why it came may yet be told, see hold
	until time.Duration // standstill after which held is the error after all
}

// collective is the operation that is running. It is used again for the next one.
type collective struct {
	call   *Call
	header shm.Header
	seq    uint64
	mail   bool // by the path that is shared with C
	agreed int  // ranks below this have made the same call, see confirmed
	told   bool // the others have its header, over TCP: once, since whatever arrives looks like progress to those who wait
	run    *proto.Run
	op     proto.Op
	choice proto.Choice
}

// add puts a call into the turn. A call that no plan can do is refused here, before it takes a number.
func (c *Comm) add(call *Call) error {
	if !call.message() {
		if err := c.judge(call); err != nil {
			return err
		}
		c.turn.queue = append(c.turn.queue, *call)
		if call.req == nil {
			c.turn.left++
		}
		return nil
	}
	if c.msgs == nil {
		c.msgs = newMessages(c.rank, c.n, c.roomFor, c.ports, c.queue)
	}
	m, err := c.msgs.start(call)
	if err != nil {
		return err
	}
	if call.req != nil {
		call.req.msg = m
	} else {
		c.turn.live = append(c.turn.live, m)
	}
	return nil
}

// judge says why no plan can do a call, nil if one can.
func (c *Comm) judge(call *Call) error {
	if call.message() {
		return nil
	}
	op := c.protoOp(call)
	if err := op.Valid(); err != nil {
		return failf(InvalidArgument, "%w", err)
	}
	_, err := c.choose(call)
	return err
}

// clear makes the turn ready for the next batch. What requests have put into it stays, unless all has failed.
func (t *turn) clear() {
	if t.err != nil {
		t.on, t.held, t.next = false, nil, len(t.queue)
	}
	t.compact()
	t.live, t.left, t.err, t.late = t.live[:0], 0, nil, nil
}

// compact forgets collectives that are finished.
func (t *turn) compact() {
	switch {
	case !t.on && t.next == len(t.queue):
		t.queue, t.next = t.queue[:0], 0
	case t.next > mostDone: // cur.call points into the old array
		t.queue, t.next = slices.Clone(t.queue[t.next:]), 0
	}
}

// mostDone is how many finished collectives may stand before others in the queue.
const mostDone = 64

// advance does what can be done now, without waiting. An error ends the turn and breaks the communicator.
func (c *Comm) advance() (moved, done bool) {
	t := &c.turn
	if t.err != nil {
		return false, true
	}
	if c.seg == nil && c.closing.Load() || c.seg != nil && c.seg.Why() != 0 {
		if err := c.heed(); err != nil {
			return false, c.drop(err)
		}
	}
	if t.held != nil {
		c.net.Poll()
		return false, false
	}
	if c.fresh.Load() {
		if c.takeIn(); t.err != nil {
			return false, true
		}
	}
	moved, err := c.advanceCollectives()
	if err == nil && c.msgs != nil && c.msgs.live+len(c.msgs.ended) > 0 {
		var m bool
		m, err = c.msgs.advance()
		moved = moved || m
		c.deliver()
	}
	if err != nil {
		return false, !c.hold(err) && c.drop(err)
	}
	if !moved && c.net != nil {
		moved = c.net.Poll()
	}
	if moved {
		c.moves++
	}
	return moved, c.settled()
}

// drop ends the turn with an error.
func (c *Comm) drop(err error) bool {
	if c.turn.on && c.turn.cur.mail {
		c.hot.Drop()
	}
	c.turn.err = c.break_(c.explain(err))
	c.failRequests(c.turn.err)
	return true
}

func (c *Comm) advanceCollectives() (moved bool, err error) {
	t := &c.turn
	for {
		if !t.on {
			if t.next == len(t.queue) {
				return moved, nil
			}
			if err := c.begin(&t.queue[t.next]); err != nil {
				return moved, err
			}
			t.next++
			t.on, moved = true, true
		}
		m, done, err := c.step()
		moved = moved || m
		if err != nil || !done {
			return moved, err
		}
		t.on = false
		if r := t.cur.call.req; r != nil {
			c.complete(r, nil)
		} else {
			t.left--
		}
	}
}

// begin takes a number, posts the header and sets the operation up.
func (c *Comm) begin(call *Call) error {
	cur := &c.turn.cur
	choice, err := c.choose(call)
	if err != nil {
		return err
	}
	cur.call, cur.choice, cur.agreed, cur.told = call, choice, 0, false
	cur.mail = c.byMail(call)
	if cur.mail {
		cur.header = header(call, 0, 0)
		if call.Func == coll.Split {
			cur.header.Func = mailFunc(call.Func) // as C posts it: headers are compared
		}
		cur.seq, err = c.hot.Post(&fast.Op{Func: mailFunc(call.Func), Type: call.Type, Red: call.Red, Count: call.Count, Scale: call.Scale,
			Send: call.Send, Recv: call.Recv})
		cur.header.Seq = cur.seq
		return err
	}
	return c.beginPlan(call)
}

func (c *Comm) beginPlan(call *Call) error {
	cur := &c.turn.cur
	cur.header = header(call, flagPlan|uint8(cur.choice.Algo), mix(uint64(cur.choice.Ahead)<<32|uint64(cur.choice.Channels), cur.choice.Slice))
	cur.seq = c.hot.Begin(&cur.header)
	cur.op = c.protoOp(call)
	p, err := c.planned(call, cur.choice)
	if err != nil {
		return err
	}
	p.lend(&cur.op, cur.choice.Slice)
	cur.run = &p.run
	tag := proto.Tag{Seq: cur.seq, Hash: cur.header.Hash()}
	return cur.run.Start(p.plan, &cur.op, c.table, c.queue, cur.choice.Slice, tag)
}

// step advances the running operation.
func (c *Comm) step() (moved, done bool, err error) {
	cur := &c.turn.cur
	if !cur.mail {
		moved, done, err = cur.run.Advance()
		if err != nil && errors.Is(err, proto.ErrTag) {
			err = c.disagree(cur.run.Blocked(), err)
		}
		if done && err == nil {
			done, err = c.confirmed()
		}
		return moved, done, err
	}
	switch c.hot.Poll() {
	case fast.Done:
		return true, true, nil
	case fast.Moved:
		return true, false, nil
	case fast.Mismatch:
		return false, false, c.disagree(c.hot.Blocker(), errMail)
	case fast.Failed:
		return false, false, failf(InternalError, "rank %d: the kernel for %v refused %v, or rank %d names memory that is not its own: "+
			"a defect of the library", c.rank, cur.call.Type, cur.call.Func, c.hot.Blocker())
	}
	return false, false, nil
}

// confirmed reports whether the other ranks have made the same call, for operations in which a receiver hears of the root alone:
// without it a rank would return success although another has named another root. Over TCP it costs too much; there a rank that
// waits finds the fault.
func (c *Comm) confirmed() (bool, error) {
	cur := &c.turn.cur
	f := cur.header.Func
	if f != coll.Broadcast && f != coll.Scatter || c.rank == cur.call.Root || c.net != nil || cur.header.Count == 0 {
		return true, nil
	}
	for ; cur.agreed < c.n; cur.agreed++ {
		h, ok := c.seg.Header(cur.agreed, 0, cur.seq)
		switch {
		case ok && h.Hash() != cur.header.Hash():
			return false, c.differ(cur.agreed, h)
		case ok || cur.agreed == c.rank:
		default:
			if last, any := c.seg.Last(cur.agreed); !any || last.Seq <= cur.seq {
				return false, nil
			}
		}
	}
	return true, nil
}

// blocker is a rank that the turn waits for, -1 if none is known.
func (c *Comm) blocker() int {
	t := &c.turn
	switch {
	case t.on && t.cur.mail:
		return c.hot.Blocker()
	case t.on && t.cur.agreed > 0:
		return min(t.cur.agreed, c.n-1)
	case t.on:
		return t.cur.run.Blocked()
	case c.msgs != nil:
		return c.msgs.blocker()
	}
	return -1
}

// byMail reports whether a call goes the path that is shared with C. All ranks get the same answer from what they share.
func (c *Comm) byMail(call *Call) bool {
	return c.free() && call.Algo == "" && c.hot.Fits(mailFunc(call.Func), call.Type, call.Red, call.Count, call.MinChannels)
}

// free reports whether nothing has narrowed the choice of algorithms.
func (c *Comm) free() bool { return c.agreed.setting.Algos == proto.Algos{} }

// mailFunc is the operation by which a call is carried out: a split is an all-gather.
func mailFunc(f coll.Func) coll.Func {
	if f == coll.Split {
		return coll.AllGather
	}
	return f
}
