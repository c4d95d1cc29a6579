package core

import (
	"fmt"
	"strings"
	"time"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/shm"
)

// farewell says how rank r went, "" if it is there.
func (c *Comm) farewell(r int) string {
	switch st := c.seg.State(r); {
	case st == shm.Left:
		return "has left the communicator (destroyed it)"
	case st == shm.Aborted:
		return "has aborted the communicator"
	case st == shm.Followed:
		return "has given up the communicator after an error" + c.because(r) + " (see its own log)"
	case c.gone[r].Load() == goneDead:
		return "is gone: its process has ended (look at its own output, and for the kernel's out-of-memory killer)"
	}
	return ""
}

// because is whose doing or absence the error of rank r was, as far as it has said.
func (c *Comm) because(r int) string {
	who, more := c.seg.Cause(r)
	switch {
	case who < 0 || who >= c.n || who == r:
		return ""
	case more:
		return fmt.Sprintf(" because of rank %d and others", who)
	}
	return fmt.Sprintf(" because of rank %d", who)
}

// goneError says who is missed. A rank that gave up probably did so because of another's death or abort, which is then the better
// answer.
func (c *Comm) goneError(r int, how string) error {
	if state := c.seg.State(r); state >= shm.Aborted {
		for d := range c.n {
			dead := c.gone[d].Load() == goneDead && c.seg.State(d) <= shm.Live
			if dead || state == shm.Followed && c.seg.State(d) == shm.Aborted {
				r, how = d, c.farewell(d)
				break
			}
		}
	}
	err := failf(RemoteError, "rank %d %s, and rank %d waits for it in %s", r, how, c.rank, c.doing()).of(r)
	if who, more := c.seg.Cause(r); !more && who >= 0 && who < c.n && who != c.rank {
		err.Ranks = []int{who} // which is passed on
	}
	return err
}

// doing names the operation under way.
func (c *Comm) doing() string {
	if c.turn.on {
		return fmt.Sprintf("operation %d, %s", c.turn.cur.seq, callText(&c.turn.cur.header))
	}
	if c.msgs != nil {
		for _, m := range c.turn.live {
			if m.state != finished {
				return messageText(&m.call)
			}
		}
	}
	if r := c.oldest(); r != nil {
		return messageText(&r.call)
	}
	if c.turn.next < len(c.turn.queue) {
		call := &c.turn.queue[c.turn.next]
		return fmt.Sprintf("%v of %d elements of %v, not begun yet", call.Func, call.Count, call.Type)
	}
	return "no operation"
}

// requestText names a call that has no header yet.
func requestText(c *Call) string {
	if c.message() {
		return messageText(c)
	}
	h := header(c, 0, 0)
	return callText(&h)
}

func messageText(c *Call) string {
	peer, upTo := fmt.Sprintf("peer %d", c.Root), ""
	if c.Root == AnySource {
		peer = "from any rank"
	}
	if c.UpTo {
		upTo = "up to "
	}
	text := fmt.Sprintf("%v of %s%d elements of %v, %s", c.Func, upTo, c.Count, c.Type, peer)
	if c.Tag != 0 && c.Tag != AnyTag {
		text += fmt.Sprintf(", tag %d", c.Tag)
	}
	return text
}

// oldest is the first message of a request that is under way, nil if there is none.
func (c *Comm) oldest() *Request {
	scheduler.mu.Lock()
	defer scheduler.mu.Unlock()
	for _, r := range c.openRequests() {
		if r.msg != nil {
			return r
		}
	}
	return nil
}

// callText is a call as its header tells it.
func callText(h *shm.Header) string {
	if h.Func == coll.Barrier {
		return "a barrier"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v of %d elements of %v", h.Func, h.Count, h.Type)
	if h.Func.Reduces() {
		fmt.Fprintf(&b, ", %v", h.Red)
	}
	switch {
	case h.Func.Rooted():
		fmt.Fprintf(&b, ", root %d", h.Root)
	case h.Func == coll.Send:
		fmt.Fprintf(&b, " to rank %d", h.Root)
	case h.Func == coll.Recv:
		fmt.Fprintf(&b, " from rank %d", h.Root)
	}
	if h.Flags&flagPlan != 0 {
		fmt.Fprintf(&b, " (%v)", proto.Algo(h.Flags&^flagPlan))
	}
	return b.String()
}

// tooLate names the ranks that have not come.
func (c *Comm) tooLate(waited time.Duration) error {
	who, absent := c.absent()
	return failf(Timeout, "rank %d gave up after %.1f s in %s; %s", c.rank, waited.Seconds(), c.doing(), who).of(absent...)
}

// lacks is the rank that the batch's own messages wait for, or those of requests; -1 if none is known.
func (c *Comm) lacks() int {
	for _, m := range c.turn.live {
		if m.state != finished {
			return m.call.Root
		}
	}
	return c.blocker()
}

// absent are the ranks that the operation under way waits for, as a text and as numbers.
func (c *Comm) absent() (who string, ranks []int) {
	if !c.turn.on {
		b := c.lacks()
		if b < 0 && c.msgs != nil && len(c.msgs.any) > 0 {
			return "no rank has sent what it takes", nil
		}
		if b < 0 {
			return "waiting for no rank", nil
		}
		return "waiting for rank " + itoa(b), []int{b}
	}
	var names []string
	for r := range c.n {
		if r == c.rank || c.seg == nil {
			continue
		}
		if last, ok := c.seg.Last(r); !ok || last.Seq < c.turn.cur.seq {
			ranks, names = append(ranks, r), append(names, itoa(r))
		}
	}
	if names == nil {
		return "all ranks have begun it", nil
	}
	word := "rank "
	if len(names) > 1 {
		word = "ranks "
	}
	return "missing: " + word + strings.Join(names, ", "), ranks
}
