package core

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/core/boot"
)

// lifeline ties the ranks together while they connect: each other rank holds a connection with rank 0. They vote over it, and who
// gives up lets go of it, so that nobody waits for that rank until the limit.
//
//	rank r to rank 0:  no | yes, once a round; an end of file before the last answer means that r has given up
//	rank 0 to rank r:  no | yes, once a round, a no as soon as it is known; lost and a rank: that rank has given up
type lifeline struct {
	c    *Comm
	fds  []int // rank 0: of the ranks 1 to n-1; else: of rank 0
	lim  boot.Limit
	lost int // the rank that has given up, -1: none is known
}

const (
	voteNo = iota
	voteYes
	voteLost // 4 bytes of the rank follow
)

const (
	lastWordTime = 300 * time.Millisecond // for a rank that gives up to say so
	visitTime    = 500 * time.Millisecond // until rank 0 looks after one that has not come
)

// tie makes the connections. A rank that gives up before it has one makes it all the same, to be seen letting go.
func (c *Comm) tie(inbox *boot.Inbox, deadline time.Time) (*lifeline, error) {
	l := &lifeline{c: c, lost: -1}
	l.lim = boot.Limit{Deadline: deadline, Peer: c.settings.PeerTimeout, Abort: l.check}
	if c.rank != 0 {
		fd, err := l.dial(l.lim)
		if err != nil {
			if fd, e := l.dial(boot.Limit{Deadline: time.Now().Add(lastWordTime)}); e == nil {
				boot.Close(fd)
			}
			var silent *boot.SilentError
			if errors.As(err, &silent) { // which knows an address, not a rank
				err = failf(ResultOf(err), "rank %d needs rank 0 while the communicator is being made: %w", c.rank, err).of(0)
			}
			return nil, err
		}
		l.fds = []int{fd}
		return l, nil
	}
	for r := 1; r < c.n; r++ {
		fd, err := l.accept(inbox, r)
		if err != nil {
			l.close(err)
			return nil, failf(ResultOf(err), "rank 0 while the communicator is being made: %w", err)
		}
		l.fds = append(l.fds, fd)
	}
	return l, nil
}

// accept waits for the connection of rank r. One that does not come is visited: its door is shut if it gave up before it knew ours.
func (l *lifeline) accept(inbox *boot.Inbox, r int) (int, error) {
	for {
		lim := l.lim
		if soon := time.Now().Add(visitTime); soon.Before(lim.Deadline) {
			lim.Deadline = soon
		}
		fd, err := inbox.Accept(purposeVote, r, lim)
		var silent *boot.SilentError
		if err == nil || !errors.As(err, &silent) || lim.Deadline.Equal(l.lim.Deadline) {
			return fd, err
		}
		p := &l.c.peers[r]
		if fd, err = boot.Dial(p.Addrs, p.Door, l.c.secret[:], 0, purposeVisit, l.lim); err != nil {
			l.lost = r
			return -1, failf(RemoteError, "rank %d gave up: %w", r, err).of(r)
		}
		boot.Close(fd)
	}
}

func (l *lifeline) dial(lim boot.Limit) (int, error) {
	p := &l.c.peers[0]
	return boot.Dial(p.Addrs, p.Door, l.c.secret[:], l.c.rank, purposeVote, lim)
}

// close lets go. Rank 0 says to all whose fault it was, if there was one.
func (l *lifeline) close(err error) {
	if err != nil && l.c.rank == 0 {
		l.tell(binary.LittleEndian.AppendUint32([]byte{voteLost}, uint32(max(l.lost, 0))))
	}
	for _, fd := range l.fds {
		boot.Close(fd)
	}
}

// tell sends b to the other ends. A new connection always has room; who is gone is noticed when its vote is read.
func (l *lifeline) tell(b []byte) {
	for _, fd := range l.fds {
		for {
			if _, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT); err != unix.EINTR {
				break
			}
		}
	}
}

// rankOf is the rank at the other end of fds[k].
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
	for k, fd := range l.fds {
		if _, _, err := l.peek(k, fd); err != nil {
			return err
		}
	}
	return nil
}

// peek looks at what the other end of fds[k] has said, without taking it.
func (l *lifeline) peek(k, fd int) (vote byte, ok bool, err error) {
	var b [5]byte
	n, _, e := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	switch {
	case e == unix.EAGAIN || e == unix.EINTR:
		return 0, false, nil
	case n == len(b) && b[0] == voteLost:
		return 0, false, l.gaveUp(int(binary.LittleEndian.Uint32(b[1:])))
	case e != nil || n <= 0:
		return 0, false, l.gaveUp(l.rankOf(k))
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
	_, answered, _ := l.peek(0, l.fds[0])
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
	for k := range l.fds {
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
	fd := l.fds[k]
	for {
		vote, ok, err := l.peek(k, fd)
		if err != nil {
			return false, err
		}
		if ok {
			var b [1]byte
			_, _, _ = unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT) // it is there
			return vote == voteYes, nil
		}
		if err := l.check(); err != nil {
			return false, err
		}
		if time.Now().After(l.lim.Deadline) {
			return false, failf(Timeout, "rank %d: rank %d did not connect to all ranks in the time allowed for init", l.c.rank,
				l.rankOf(k)).of(l.rankOf(k))
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20)
	}
}
