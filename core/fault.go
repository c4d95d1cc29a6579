package core

import (
	"errors"
	"strconv"
	"time"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/shm"
)

var errMail = errors.New("mail of another operation")

func itoa(n int) string { return strconv.Itoa(n) }

// headerTime is how long a rank that got data of another operation over TCP waits to be told which.
const headerTime = 2 * time.Second

// hold keeps an error back that another rank may explain. Over TCP data travel apart from headers and from what is known of deaths:
// a slice of another operation comes before the header that names it, and a rank that gave up because of a death is gone before
// this rank has noticed the death. Until then, or until diagnose finds that the time is over, the turn stands still.
func (c *Comm) hold(err error) bool {
	var gone *tcp.GoneError
	switch {
	case c.net == nil:
		return false
	case errors.Is(err, proto.ErrTag):
		c.turn.until = headerTime
	case errors.As(err, &gone):
		c.turn.until = graceTime
	default:
		return false
	}
	c.turn.held = err
	return true
}

// heed acts on the reasons for which this rank was woken. An error ends what it is doing.
func (c *Comm) heed() error {
	why := shm.WhyClose // one without a segment has no other reason
	if c.seg != nil {
		why = c.seg.Why()
	}
	if why&shm.WhyClose != 0 {
		who, absent := c.absent()
		how := "aborted"
		if c.leaving.Load() {
			how = "destroyed"
		}
		return failf(InvalidUsage, "rank %d: the communicator was %s while an operation was under way: %s; %s", c.rank, how, c.doing(),
			who).of(absent...)
	}
	if why&shm.WhyFault != 0 {
		if f, ok := c.seg.Fault(); ok {
			return c.faultError(&f)
		}
	}
	if why&(shm.WhyAbort|shm.WhyDeath|shm.WhyLeft) != 0 {
		c.anyGone.Store(true)
		c.turn.news = time.Now()
	}
	c.seg.Clear(why & (shm.WhyAbort | shm.WhyDeath | shm.WhyLeft | shm.WhyLimit))
	return nil
}

// diagnose says why nothing has moved for a while, nil if the others may just be late.
func (c *Comm) diagnose(waited, limit time.Duration) error {
	if c.anyGone.Load() {
		if err := c.gap(min(waited, time.Since(c.turn.news)) >= graceTime); err != nil {
			return err
		}
	}
	patience := compareTime * time.Duration(max(1, c.n/crowd))
	if (waited >= patience || limit == NoLimit) && c.turn.on && c.seg != nil { // who has a limit tells that it has come
		if err := c.compare(); err != nil {
			return err
		}
		if err := c.audit(); err != nil {
			return err
		}
	}
	if c.turn.held != nil && waited >= c.turn.until {
		return c.turn.held
	}
	if limit == 0 {
		limit = c.Limit()
	}
	if limit > 0 && waited >= limit {
		return c.tooLate(waited)
	}
	return c.unanswered(waited)
}

// gap looks for a rank that is gone and that this rank still needs. Who has posted a later operation, or left in order after this
// one, has given all; who went in the middle of it may have, so it gets a grace period first.
func (c *Comm) gap(grace bool) error {
	for r := range c.n {
		how := c.farewell(r)
		if r == c.rank || how == "" {
			continue
		}
		if grace && c.msgs != nil && (c.msgs.waitsFor(r) || len(c.msgs.any) > 0 && c.missedByAny(r)) {
			return c.goneError(r, how)
		}
		if !c.turn.on {
			continue
		}
		last, ok := c.seg.Last(r)
		never := (!ok || last.Seq < c.turn.cur.seq) && c.seg.State(r) < shm.Aborted // who gave up may know of a death before us
		early := (!ok || last.Seq <= c.turn.cur.seq) && c.seg.State(r) != shm.Left
		if never || early && grace {
			return c.goneError(r, how)
		}
	}
	return nil
}

// missedByAny reports whether a receive from any source must end because rank r is gone: not if it left in order, as long as there is
// another that can send.
func (c *Comm) missedByAny(r int) bool {
	if c.seg.State(r) != shm.Left {
		return true
	}
	for other := range c.n {
		if other != c.rank && c.farewell(other) == "" {
			return false
		}
	}
	return true
}

// compare holds this rank's call against the calls of all others with the same number; the first difference is everyone's fault.
func (c *Comm) compare() error {
	cur := &c.turn.cur
	if c.net != nil && !cur.told {
		cur.told = true
		c.tellHeader(&cur.header)
	}
	for r := range c.n {
		h, ok := c.seg.Header(r, cur.header.Lane, cur.seq)
		if ok && r != c.rank && h.Hash() != cur.header.Hash() {
			return c.differ(r, h)
		}
	}
	return nil
}

// auditDepth is how many of the last operations audit looks at.
const auditDepth = 8

// audit compares this rank's last calls with those of the others: two ranks that both took themselves for a broadcast's root have
// waited for nobody. What they gave stays where it is, and may stand in the way of a later operation for ever.
func (c *Comm) audit() error {
	last, ok := c.seg.Last(c.rank)
	if !ok {
		return nil
	}
	c.tellSince(last.Seq)
	for seq := last.Seq - min(last.Seq, auditDepth); seq <= last.Seq; seq++ {
		mine, ok := c.seg.Header(c.rank, 0, seq)
		for r := 0; ok && r < c.n; r++ {
			if theirs, there := c.seg.Header(r, 0, seq); there && theirs.Hash() != mine.Hash() {
				return c.record(pair(c.rank, mine, r, theirs))
			}
		}
	}
	return nil
}

// pair is a fault with the lower rank first.
func pair(a int, ha shm.Header, b int, hb shm.Header) shm.Fault {
	if a > b {
		a, ha, b, hb = b, hb, a, ha
	}
	return shm.Fault{Ranks: [2]int{a, b}, Headers: [2]shm.Header{ha, hb}}
}

// disagree is called when data of another operation came from rank r.
func (c *Comm) disagree(r int, cause error) error {
	if r >= 0 && r < c.n && c.seg != nil {
		if h, ok := c.seg.Header(r, c.turn.cur.header.Lane, c.turn.cur.seq); ok && h.Hash() != c.turn.cur.header.Hash() {
			return c.differ(r, h)
		}
	}
	if err := c.compare(); err != nil {
		return err
	}
	if c.seg != nil { // the data may belong to an earlier operation, in which this rank needed nothing of others
		_ = c.audit() // its finding is the fault, or another was first
		if f, ok := c.seg.Fault(); ok {
			return c.faultError(&f)
		}
	}
	return failf(InvalidUsage, "rank %d in %s got data of another operation from rank %d: the ranks do not make the same calls in the "+
		"same order: %w", c.rank, c.doing(), r, cause).of(r)
}

// differ records that rank r made another call, for all ranks to see.
func (c *Comm) differ(r int, theirs shm.Header) error {
	return c.record(pair(c.rank, c.turn.cur.header, r, theirs))
}

// record makes f the fault of the communicator, unless there is one, and returns what stands as an error.
func (c *Comm) record(f shm.Fault) error {
	if c.seg == nil {
		return c.faultError(&f)
	}
	if !c.seg.SetFault(f) {
		if first, ok := c.seg.Fault(); ok {
			f = first
		}
	}
	if c.net != nil {
		c.tellFault(&f)
	}
	return c.faultError(&f)
}

func (c *Comm) faultError(f *shm.Fault) error {
	a, b := &f.Headers[0], &f.Headers[1]
	if a.Func == coll.Send {
		return failf(InvalidUsage, "rank %d calls %s and rank %d calls %s: a message and its receive must name the same count and type",
			f.Ranks[0], callText(a), f.Ranks[1], callText(b)).of(f.Ranks[:]...)
	}
	mine, theirs, more := callText(a), callText(b), ""
	if mine == theirs { // what is only hashed: the counts of a V form, channels, slice
		more = " with other counts for single ranks, or another number of channels"
	}
	return failf(InvalidUsage, "the ranks disagree in operation %d: rank %d calls %s, rank %d calls %s%s: all ranks must make the same calls "+
		"in the same order", a.Seq, f.Ranks[0], mine, f.Ranks[1], theirs, more).of(f.Ranks[:]...)
}

// explain gives an error of a transport or plan its context, unless it is one for callers already. A clash of a message and its
// receive becomes the fault of all ranks.
func (c *Comm) explain(err error) error {
	var m *clash
	if errors.As(err, &m) {
		return c.record(shm.Fault{Ranks: [2]int{m.from, m.to}, Headers: [2]shm.Header{m.sent, m.wanted}})
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	var g *tcp.GoneError
	if errors.As(err, &g) {
		if how := c.farewell(g.Rank); how != "" {
			return c.goneError(g.Rank, how)
		}
	}
	return failf(ResultOf(err), "rank %d in %s: %w", c.rank, c.doing(), err)
}
