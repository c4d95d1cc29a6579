package core

import (
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/core/boot"
)

// vote tells every rank whether all ranks could share memory: each tells rank 0, which answers all.
func (c *Comm) vote(inbox *boot.Inbox, mine bool, deadline time.Time) (all bool, err error) {
	lim := c.limit(deadline)
	if c.rank != 0 {
		fd, err := boot.Dial(c.peers[0].Addrs, c.peers[0].Door, c.secret[:], c.rank, purposeVote, lim)
		if err != nil {
			return false, err
		}
		defer boot.Close(fd)
		if err := cast(fd, mine); err != nil {
			return false, c.voteLost(0, err)
		}
		all, err := c.count(fd, deadline)
		return all, c.voteLost(0, err)
	}
	fds := make([]int, 0, c.n)
	defer func() {
		for _, fd := range fds {
			boot.Close(fd)
		}
	}()
	all = mine
	for r := 1; r < c.n; r++ {
		fd, err := inbox.Accept(purposeVote, r, lim)
		if err != nil {
			return false, c.voteLost(r, err)
		}
		fds = append(fds, fd)
		yes, err := c.count(fd, deadline)
		if err != nil {
			return false, c.voteLost(r, err)
		}
		all = all && yes
	}
	for r, fd := range fds {
		if err := cast(fd, all); err != nil {
			return false, c.voteLost(r+1, err)
		}
	}
	return all, nil
}

// cast sends a vote: one byte, for which a new connection always has room.
func cast(fd int, yes bool) error {
	b := []byte{0}
	if yes {
		b[0] = 1
	}
	for {
		_, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			return err
		}
	}
}

// count receives a vote.
func (c *Comm) count(fd int, deadline time.Time) (bool, error) {
	var b [1]byte
	for {
		n, _, err := unix.Recvfrom(fd, b[:], 0)
		switch {
		case n == 1:
			return b[0] == 1, nil
		case err == nil:
			return false, io.EOF
		case err != unix.EAGAIN && err != unix.EINTR:
			return false, err
		case time.Now().After(deadline):
			return false, failf(Timeout, "rank %d: no answer in the time allowed for init", c.rank)
		}
		if err := c.aborted(); err != nil {
			return false, err
		}
		unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20)
	}
}

func (c *Comm) voteLost(r int, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return failf(RemoteError, "rank %d lost rank %d while the communicator was being made: %w", c.rank, r, err)
}
