package boot

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// The exchange is Bruck's all-gather: before round k a rank holds the blocks of ranks r, r-1, ..., r-(2^k-1); in round k it sends
// as many as are needed of them to rank r+2^k and gets the next ones from rank r-2^k.
//
//	n=5, rank 0   round 0: {0} to 1, {4} from 4   round 1: {0 4} to 2, {3 2} from 3   round 2: {0} to 4, {1} from 1
//
// All connections are made at once, each for one round and one direction, so that an end is heard by both neighbours. A rank that
// fails tells everyone it is connected to why, and they pass it on: log2(n) hops reach all.

const (
	purposeMeet = 0 // other purposes are free for others

	lostAfter  = time.Second            // a partner that refuses for so long has gone: it was there when the roll call ended
	tellFailed = 300 * time.Millisecond // for connections that are still being made when this rank fails
	tellAbort  = 50 * time.Millisecond
	lastChance = 2 * time.Second // for the exchange, when the last rank came just before the limit
)

type rounds struct {
	*meeting
	held   [][]byte // of ranks r, r-1, r-2, ...
	out    []*link  // by round
	in     []*link
	all    []*link
	bell   int // rings when the inbox gets something
	start  time.Time
	fds    []unix.PollFd
	looked time.Time // when all links last had a turn
	word   []byte    // what the speaker has heard, see speak.go
	before *link     // where the word comes from; nil: it is not waited for
	failed bool      // and the neighbours have been told
}

// begin prepares the rounds, which close ends.
func (m *meeting) begin(partners []partner) (*rounds, error) {
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, &SystemError{"cannot wait for the other ranks", err}
	}
	svc, err := Default()
	if err != nil {
		return nil, err
	}
	x := &rounds{meeting: m, bell: opened(bell), start: time.Now()}
	if !m.lim.Deadline.IsZero() && time.Until(m.lim.Deadline) < lastChance {
		m.lim.Deadline = x.start.Add(lastChance)
	}
	for k, p := range partners {
		d := &dialing{addrs: p.addrs, key: p.key, secret: m.inbox.secret, from: m.rank, purpose: m.purpose, here: svc, bell: bell,
			psk: m.key}
		x.out = append(x.out, &link{of: m, peer: p.rank, dial: d, ready: true})
		x.in = append(x.in, &link{of: m, peer: m.rankAt(m.placeOf(m.rank) - 1<<k)})
	}
	x.all = append(append(x.all, x.out...), x.in...)
	m.inbox.ring(bell)
	exchanging.Add(1)
	return x, nil
}

// gather returns what all of the circle gave as mine, in the order of their ranks.
func (x *rounds) gather(mine []byte) ([][]byte, error) {
	x.held = [][]byte{mine}
	if err := x.until(x.done); err != nil {
		return nil, err
	}
	all, at := make([][]byte, x.size()), x.placeOf(x.rank)
	for i, b := range x.held {
		all[(at-i+x.size())%x.size()] = b
	}
	return all, nil
}

// until moves on what can be moved until that is enough. An error ends all, and the neighbours are told.
func (x *rounds) until(enough func() bool) error {
	for {
		moved, err := x.turn()
		if err == nil && enough() {
			return nil
		}
		if err == nil {
			err = x.limit()
		}
		if err != nil {
			x.tell(err)
			return err
		}
		if !moved {
			x.wait(x.pace())
		}
	}
}

// close ends the rounds: with a word to those who sent here, as an end without one is that of a rank that failed.
func (x *rounds) close() {
	exchanging.Add(-1)
	for _, l := range x.in {
		if !x.failed && l.s != nil {
			_ = l.s.send(framed(frameDone, 0, nil))
		}
	}
	for _, l := range x.all {
		if l.dial != nil {
			l.dial.close()
		}
		if l.s != nil {
			l.s.close()
		}
	}
	x.inbox.ring(-1)
	Close(x.bell)
}

func (x *rounds) done() bool {
	for _, l := range x.out {
		if !l.sent || l.s.out != nil {
			return false
		}
	}
	return len(x.held) == x.size()
}

// turn moves everything on that can move.
func (x *rounds) turn() (moved bool, err error) {
	x.arrivals()
	if err := x.talk(); err != nil {
		return false, err
	}
	if l := x.before; l != nil && l.word == nil && l.ended {
		return false, l.gone()
	}
	return x.collect()
}

// talk hears and sends on all links. Of several errors it returns one that a neighbour tells: it knows why a third one is not there.
func (x *rounds) talk() (first error) {
	for k, l := range x.out {
		if err := x.push(k, l); first == nil {
			first = err
		}
	}
	for k, l := range x.in {
		if l.ready || first != nil {
			if err := l.read(x.atMost(k)); first == nil {
				first = err
			}
		}
	}
	if first != nil {
		for _, l := range x.all {
			if l.news != nil {
				return l.news
			}
		}
	}
	return first
}

// limit is the error for a limit that has passed, or an abort.
func (x *rounds) limit() error {
	err := x.lim.check()
	if err != errDeadline {
		return err
	}
	if k := bits.Len(uint(len(x.held))) - 1; len(x.held) < x.size() {
		return &SilentError{x.in[k].peer, fmt.Sprintf("came to the roll call, but did not send what it has to say to rank %d "+
			"before the limit passed", x.rank), false}
	}
	for _, l := range x.out {
		if !l.sent || l.s.out != nil {
			return &SilentError{l.peer, fmt.Sprintf("came to the roll call, but did not take what rank %d has to say "+
				"before the limit passed", x.rank), false}
		}
	}
	if l := x.before; l != nil {
		return &SilentError{l.peer, fmt.Sprintf("did not pass on what the ranks of the other ids have to say before the limit of rank %d "+
			"passed", x.rank), false}
	}
	return nil
}

// exchanging counts the ranks of this process that are in rounds.
var exchanging atomic.Int32

const (
	lookTime = 5 * time.Millisecond // between turns of connections that are being made
	crowd    = 16                   // ranks of a process that look at the clock and at Abort each tick; where there are more, each less often
	mostPace = 200 * time.Millisecond
)

// pace is how long to wait at most.
func (x *rounds) pace() time.Duration {
	dialing, soon := false, tick
	for _, l := range x.out {
		if l.s == nil {
			dialing, soon = true, min(soon, l.dial.pause())
		}
	}
	if dialing {
		return soon
	}
	return min(tick*time.Duration(1+exchanging.Load()/crowd), mostPace)
}

func (x *rounds) wait(d time.Duration) {
	x.fds = append(x.fds[:0], unix.PollFd{Fd: int32(x.bell), Events: unix.POLLIN})
	for _, l := range x.all {
		switch {
		case l.s != nil && !l.ended:
			x.fds = append(x.fds, l.s.pollFd())
		case l.s == nil && l.dial != nil:
			x.fds = l.dial.pollFds(x.fds)
		}
		l.polled = len(x.fds)
	}
	pollFor(x.fds, d)
	var b [8]byte
	unix.Read(x.bell, b[:])
	x.look(time.Now())
}

// look finds out which links are worth a system call. Those in memory cost none. Connections that are still being made have a turn now
// and then at any rate, as that goes by the clock too; those that are there only when something has come, or ranks by hundreds would read
// thousands of empty sockets.
func (x *rounds) look(now time.Time) {
	all := now.Sub(x.looked) >= lookTime
	if all {
		x.looked = now
	}
	at := 1
	for _, l := range x.all {
		l.ready = l.s == nil && all || l.s != nil && l.s.near != nil
		for ; at < l.polled; at++ {
			l.ready = l.ready || x.fds[at].Revents != 0
		}
	}
}
