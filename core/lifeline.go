package core

import (
	"encoding/binary"
	"errors"
	"time"

	"hccl.dev/hccl/core/boot"
)

// lifeline ties the ranks together while they connect: each other rank holds a connection with rank 0. They vote over it, and who
// gives up lets go of it, so that nobody waits for that rank until the limit.
//
//	rank r to rank 0:  no | yes, once a round; an end of file before the last answer means that r has given up
//	rank 0 to rank r:  no | yes, once a round, a no as soon as it is known; lost and a rank: that rank has given up
type lifeline struct {
	c     *Comm
	lines []*boot.Line // rank 0: to the ranks 1 to n-1; else: to rank 0
	lim   boot.Limit
	lost  int // the rank that has given up, -1: none is known

	looked time.Time // at all lines, which are a system call each
}

const (
	voteNo = iota
	voteYes
	voteLost // 4 bytes of the rank follow
	lostSize = 5
)

const (
	lastWordTime = 300 * time.Millisecond // for a rank that gives up to say so
	checkTime    = 20 * time.Millisecond
	visitTime    = 500 * time.Millisecond // until rank 0 looks after one that has not come
)

// tie makes the connections. A rank that gives up before it has one makes it all the same, to be seen letting go.
func (c *Comm) tie(inbox *boot.Inbox, deadline time.Time) (*lifeline, error) {
	l := &lifeline{c: c, lost: -1}
	l.lim = boot.Limit{Deadline: deadline, Peer: c.settings.PeerTimeout, Abort: l.check}
	if c.rank != 0 {
		line, err := l.dial(l.lim)
		if err != nil {
			if line, e := l.dial(boot.Limit{Deadline: time.Now().Add(lastWordTime)}); e == nil {
				line.Close()
			}
			var silent *boot.SilentError
			var key *boot.KeyError
			if errors.As(err, &silent) || errors.As(err, &key) { // which know an address, not a rank
				err = failf(ResultOf(err), "rank %d needs rank 0 while the communicator is being made: %w", c.rank, err).of(0)
			}
			return nil, err
		}
		l.lines = []*boot.Line{line}
		return l, nil
	}
	for r := 1; r < c.n; r++ {
		line, err := l.accept(inbox, r)
		if err != nil {
			l.close(err)
			return nil, failf(ResultOf(err), "rank 0 while the communicator is being made: %w", err)
		}
		l.lines = append(l.lines, line)
	}
	return l, nil
}

// accept waits for the connection of rank r. One that does not come is visited: its door is shut if it gave up before it knew ours.
func (l *lifeline) accept(inbox *boot.Inbox, r int) (*boot.Line, error) {
	for {
		lim := l.lim
		if soon := time.Now().Add(visitTime); soon.Before(lim.Deadline) {
			lim.Deadline = soon
		}
		conn, err := inbox.Accept(purposeVote, r, lim)
		var silent *boot.SilentError
		if err == nil {
			return conn.Line(), nil
		}
		if !errors.As(err, &silent) || lim.Deadline.Equal(l.lim.Deadline) {
			return nil, err
		}
		p := &l.c.peers[r]
		if conn, err = boot.Dial(p.Addrs, p.Door, l.c.secret[:], 0, purposeVisit, l.lim); err != nil {
			l.lost = r
			return nil, failf(RemoteError, "rank %d gave up: %w", r, err).of(r)
		}
		boot.Close(conn.FD)
	}
}

func (l *lifeline) dial(lim boot.Limit) (*boot.Line, error) {
	p := &l.c.peers[0]
	conn, err := boot.Dial(p.Addrs, p.Door, l.c.secret[:], l.c.rank, purposeVote, lim)
	if err != nil {
		return nil, err
	}
	return conn.Line(), nil
}

// close lets go. Rank 0 says to all whose fault it was, if there was one.
func (l *lifeline) close(err error) {
	if err != nil && l.c.rank == 0 {
		l.tell(binary.LittleEndian.AppendUint32([]byte{voteLost}, uint32(max(l.lost, 0))))
	}
	for _, line := range l.lines {
		line.Close()
	}
}

// tell sends b to the other ends.
func (l *lifeline) tell(b []byte) {
	for _, line := range l.lines {
		line.Say(b)
	}
}

// rankOf is the rank at the other end of lines[k].
func (l *lifeline) rankOf(k int) int {
	if l.c.rank == 0 {
		return k + 1
	}
	return 0
}

// check says why a wait must end: Abort here, or a rank that has given up.
func (l *lifeline) check() error {
	if err := l.c.aborted(); err != nil {
		return err
	}
	for k := range l.lines {
		if _, _, err := l.peek(k); err != nil {
			return err
		}
	}
	return nil
}

// peek looks at what the other end of lines[k] has said, without taking it.
func (l *lifeline) peek(k int) (vote byte, ok bool, err error) {
	b, err := l.lines[k].Heard(lostSize)
	switch {
	case err != nil:
		return 0, false, l.gaveUp(l.rankOf(k))
	case len(b) == 0:
		return 0, false, nil
	case len(b) == lostSize && b[0] == voteLost:
		return 0, false, l.gaveUp(int(binary.LittleEndian.Uint32(b[1:])))
	}
	return b[0], b[0] != voteLost, nil
}

func (l *lifeline) gaveUp(r int) error {
	l.lost = r
	return failf(RemoteError, "rank %d gave up or ended while the communicator was being made, and rank %d needs it: see its own output",
		r, l.c.rank).of(r)
}

// stop reports whether waiting for what the vote is about has become useless.
func (l *lifeline) stop() bool {
	if l.check() != nil {
		return true
	}
	_, answered, _ := l.peek(0)
	return answered && l.c.rank != 0
}

// vote returns whether all ranks have voted yes. All ranks vote equally often.
func (l *lifeline) vote(mine bool) (bool, error) {
	ballot := []byte{voteNo}
	if mine {
		ballot[0] = voteYes
	}
	if l.c.rank != 0 {
		l.tell(ballot)
		return l.read(0)
	}
	if !mine {
		l.tell(ballot)
	}
	for k := range l.lines {
		yes, err := l.read(k)
		if err != nil {
			return false, err
		}
		if mine && !yes {
			mine = false
			l.tell([]byte{voteNo})
		}
	}
	if mine {
		l.tell(ballot)
	}
	return mine, nil
}

// read takes a vote, or an answer.
func (l *lifeline) read(k int) (bool, error) {
	for {
		vote, ok, err := l.peek(k)
		if err != nil {
			return false, err
		}
		if ok {
			l.lines[k].Take(1)
			return vote == voteYes, nil
		}
		if now := time.Now(); now.Sub(l.looked) > checkTime {
			if err := l.check(); err != nil {
				return false, err
			}
			l.looked = now
		}
		if time.Now().After(l.lim.Deadline) {
			return false, failf(Timeout, "rank %d: rank %d did not connect to all ranks in the time allowed for init", l.c.rank,
				l.rankOf(k)).of(l.rankOf(k))
		}
		l.lines[k].Wait(20 * time.Millisecond)
	}
}
