package core

import (
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/shm"
)

// Purposes of connections between ranks of a communicator.
const (
	purposeVote  = 1 + iota // a lifeline
	purposeVisit            // is the rank still there?
	purposeData
)

func newGone(n int) []atomic.Uint32 { return make([]atomic.Uint32, n) }

// channels is the number of channels that the communicator has ports for.
func (c *Comm) channels() int { return min(max(4, c.agreed.setting.MinChannels), 16) }

// connect joins the ranks: by shared memory if every rank can, else by TCP.
func (c *Comm) connect(inbox *boot.Inbox, deadline time.Time) (err error) {
	if c.agreed.setting.MaxChannels == 0 || c.agreed.setting.MaxChannels > c.channels() {
		c.agreed.setting.MaxChannels = c.channels()
	}
	line, err := c.tie(inbox, deadline)
	if err != nil {
		return err
	}
	defer func() { line.close(err) }()
	if c.agreed.share {
		cause := c.joinShared(line)
		all, err := line.vote(cause == nil)
		if err != nil {
			return err
		}
		if all {
			c.withdrawSegment()
			return nil
		}
		c.unjoin()
		c.log.Warn("the ranks of this communicator use TCP, not shared memory: %s", reason(cause))
	}
	if err := c.joinTCP(inbox, line.lim); err != nil {
		return err
	}
	_, err = line.vote(true)
	return err
}

// withdrawSegment is called when every rank has joined: nobody will ask for the segment any more.
func (c *Comm) withdrawSegment() {
	if c.rank == 0 {
		sharing.local.Withdraw(c.peers[0].SegmentKey)
		c.seg.CloseFD()
	}
}

func reason(cause error) string {
	if cause == nil {
		return "another rank could not map it, see its log; ranks in containers need one network namespace for it"
	}
	return cause.Error()
}

// joinShared maps the communicator's segment, which rank 0 makes, and the arenas of all processes.
func (c *Comm) joinShared(line *lifeline) error {
	local, err := share(c.settings)
	if err != nil {
		return err
	}
	if err := c.mapSegment(local, line); err != nil {
		return err
	}
	ranks, procs := make([]int, c.n), make([]*shm.Peer, c.n)
	for r := range c.n {
		ranks[r] = r
		procs[r], err = local.Connect(c.peers[r].Exchange, c.peers[r].ArenaKey, line.lim.Deadline, line.stop)
		if err != nil {
			releaseAll(procs[:r])
			return err
		}
	}
	if err := c.seg.Join(c.rank, ranks, procs); err != nil {
		releaseAll(procs)
		return err
	}
	c.watch(procs)
	c.ports = c.seg.Ports()
	return nil
}

func releaseAll(procs []*shm.Peer) {
	for _, p := range procs {
		p.Release()
	}
}

func (c *Comm) mapSegment(local *shm.Local, line *lifeline) (err error) {
	if c.rank == 0 {
		if c.seg, err = shm.Create(c.n, c.channels()); err == nil {
			local.Offer(c.peers[0].SegmentKey, c.seg.FD())
		}
		return err
	}
	fd, err := local.Fetch(c.peers[0].Exchange, c.peers[0].SegmentKey, line.lim.Deadline, line.stop)
	if err != nil {
		return err
	}
	c.seg, err = shm.Map(fd, c.n, c.channels())
	return err
}

// watch has this rank told when another's process ends.
func (c *Comm) watch(procs []*shm.Peer) {
	for r, p := range procs {
		if r != c.rank && c.peers[r].Exchange != c.peers[c.rank].Exchange {
			c.cancels = append(c.cancels, p.Watch(func() { c.died(r) }))
		}
	}
}

// died is called once when the process of rank r has ended without leaving the communicator.
func (c *Comm) died(r int) {
	c.gone[r].Store(goneDead)
	c.anyGone.Store(true)
	c.seg.Raise(c.seg.Self(), shm.WhyDeath)
}

// unjoin undoes joinShared, also where it went only half the way.
func (c *Comm) unjoin() {
	for _, cancel := range c.cancels {
		cancel()
	}
	c.cancels = nil
	if c.rank == 0 && sharing.local != nil {
		sharing.local.Withdraw(c.peers[0].SegmentKey)
	}
	if c.seg != nil {
		c.seg.Close()
		c.seg, c.ports = nil, nil
	}
}

// joinTCP connects every pair of ranks; the higher rank dials.
func (c *Comm) joinTCP(inbox *boot.Inbox, lim boot.Limit) (err error) {
	if c.seg, err = shm.Mirror(c.rank, c.n); err != nil {
		return err
	}
	c.net = tcp.New(c.rank, c.n, func() { c.seg.Ring(c.rank) })
	c.net.OnControl(c.hear)
	c.net.OnGone(c.lost)
	c.ports = c.net
	for r := range c.n {
		if r == c.rank {
			continue
		}
		var fd int
		if r < c.rank {
			fd, err = boot.Dial(c.peers[r].Addrs, c.peers[r].Door, c.secret[:], c.rank, purposeData, lim)
		} else {
			fd, err = inbox.Accept(purposeData, r, lim)
		}
		if err == nil {
			err = c.net.Add(r, fd)
		}
		if err != nil {
			return failf(ResultOf(err), "rank %d cannot connect to rank %d: %w", c.rank, r, err).of(r)
		}
	}
	return nil
}

// childSecret is the secret of a communicator that is split off: all its ranks derive the same.
func childSecret(parent secret, split uint64, color int32) secret {
	b := binary.LittleEndian.AppendUint32(parent[:], uint32(split))
	return sha256.Sum256(binary.LittleEndian.AppendUint32(b, uint32(color)))
}
