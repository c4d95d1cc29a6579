package core

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync/atomic"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/core/links"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/shm"
)

// Purposes of connections between ranks of a communicator.
const (
	purposeVote  = 1 + iota // a lifeline
	purposeVisit            // is the rank still there?
	purposeHosts            // what hosts look like goes round
	purposeRings            // and how rings go
)

func newGone(n int) []atomic.Uint32 { return make([]atomic.Uint32, n) }

// channels is the number of channels that the communicator has ports for.
func (c *Comm) channels() int {
	least := 4
	if c.wide {
		least = 8 // proto takes no more across a network
	}
	return min(max(least, c.agreed.setting.MinChannels, c.agreed.setting.Rings), 16)
}

// connect joins the ranks: those of one host by shared memory if every rank of every host can, all others by TCP.
func (c *Comm) connect(inbox *boot.Inbox, deadline time.Time) (err error) {
	groups := c.groups()
	c.wide = len(groups) > 1 || !c.agreed.share
	if c.agreed.setting.MaxChannels == 0 || c.agreed.setting.MaxChannels > c.channels() {
		c.agreed.setting.MaxChannels = c.channels()
	}
	c.crowded = c.onHost() > shm.Processors()
	line, err := c.tie(inbox, deadline)
	if err != nil {
		return err
	}
	defer func() { line.close(err) }()
	c.phases.end("ties to rank 0")
	if c.agreed.share && several(groups) {
		err := c.tryShared(line, group(groups, c.rank))
		c.phases.end("shared memory")
		if err != nil || c.agreed.share && len(groups) == 1 {
			return err
		}
	}
	c.agreed.cross(!c.agreed.share || !several(groups))
	if err := c.joinTCP(); err != nil {
		return err
	}
	if _, err = line.vote(true); err != nil { // all have joined: whoever is sent something knows from whom it comes
		return err
	}
	if c.settings.Preconnect {
		err = c.connectAll(line.lim)
	}
	if err == nil {
		_, err = line.vote(true)
	}
	c.phases.end("connections")
	return err
}

// tryShared joins the ranks that can share memory with this one. If that fails anywhere, no rank shares memory: agreed says so.
func (c *Comm) tryShared(line *lifeline, group []int) error {
	cause := c.joinShared(line, group)
	all, err := line.vote(cause == nil)
	if err != nil {
		return err
	}
	if all {
		c.withdrawSegment(group)
		return nil
	}
	c.unjoin(group)
	c.agreed.share = false
	c.log.Warn("the ranks of this communicator use TCP, not shared memory: %s", reason(cause))
	return nil
}

// shared is the segment that this rank has in common with group: of all ranks, or for the data of some.
func (c *Comm) shared(group []int) **shm.Segment {
	if len(group) == c.n {
		return &c.seg
	}
	return &c.near
}

// withdrawSegment is called when every rank has joined: nobody will ask for the segment any more.
func (c *Comm) withdrawSegment(group []int) {
	if seg := *c.shared(group); c.rank == group[0] && seg != nil {
		sharing.local.Withdraw(c.peers[c.rank].SegmentKey)
		seg.CloseFD()
	}
}

func reason(cause error) string {
	if cause == nil {
		return "another rank could not map it, see its log; ranks in containers need one network namespace for it"
	}
	return cause.Error()
}

// joinShared maps the segment of group, which its first rank makes, and the arenas of all its processes.
func (c *Comm) joinShared(line *lifeline, group []int) error {
	if len(group) == 1 {
		return nil
	}
	local, err := share(c.settings)
	if err != nil {
		return err
	}
	seg, err := c.mapSegment(local, line, group)
	if err != nil {
		return err
	}
	procs := make([]*shm.Peer, len(group))
	for i, r := range group {
		procs[i], err = local.Connect(c.peers[r].Exchange, c.peers[r].ArenaKey, line.lim.Deadline, line.stop)
		if err != nil {
			releaseAll(procs[:i])
			return err
		}
	}
	if err := seg.Join(slices.Index(group, c.rank), group, procs); err != nil {
		releaseAll(procs)
		return err
	}
	if err := c.mirror(); err != nil {
		return err
	}
	c.watch(group, procs)
	c.ports = seg.Ports()
	return nil
}

func releaseAll(procs []*shm.Peer) {
	for _, p := range procs {
		p.Release()
	}
}

func (c *Comm) mapSegment(local *shm.Local, line *lifeline, group []int) (seg *shm.Segment, err error) {
	first := &c.peers[group[0]]
	if c.rank == group[0] {
		if seg, err = shm.Create(len(group), c.channels()); err == nil {
			local.Offer(first.SegmentKey, seg.FD())
		}
	} else {
		var fd int
		if fd, err = local.Fetch(first.Exchange, first.SegmentKey, line.lim.Deadline, line.stop); err == nil {
			seg, err = shm.Map(fd, len(group), c.channels())
		}
	}
	*c.shared(group) = seg
	return seg, err
}

// watch has this rank told when the process of another one of group ends.
func (c *Comm) watch(group []int, procs []*shm.Peer) {
	for i, p := range procs {
		if r := group[i]; c.peers[r].Exchange != c.peers[c.rank].Exchange {
			c.cancels = append(c.cancels, p.Watch(func() { c.died(r) }))
		}
	}
}

// died is called once or twice when the process of rank r has ended without leaving the communicator.
func (c *Comm) died(r int) {
	c.gone[r].Store(goneDead)
	c.anyGone.Store(true)
	c.seg.Raise(c.seg.Self(), shm.WhyDeath)
}

// unjoin undoes joinShared, also where it went only half the way.
func (c *Comm) unjoin(group []int) {
	for _, cancel := range c.cancels {
		cancel()
	}
	c.cancels = nil
	if c.rank == group[0] && sharing.local != nil {
		sharing.local.Withdraw(c.peers[c.rank].SegmentKey)
	}
	for _, seg := range []*shm.Segment{c.near, c.seg} {
		if seg != nil {
			seg.Close()
		}
	}
	c.near, c.seg, c.ports = nil, nil, nil
}

// mirror gives a rank that does not share memory with all others a segment of its own, for what they tell over TCP.
func (c *Comm) mirror() (err error) {
	if c.seg == nil {
		c.seg, err = shm.Mirror(c.rank, c.n)
	}
	return err
}

// joinTCP has what this rank tells each other one go by the connections of their processes. Ranks that share memory have them too, for
// what they tell.
func (c *Comm) joinTCP() error {
	if err := c.mirror(); err != nil {
		return err
	}
	boundStaging(c.settings)
	c.net = tcp.New(pool.Net(), binary.LittleEndian.Uint64(c.secret[:]), c.rank, c.n, func() { c.seg.Ring(c.rank) })
	c.net.Use(c.agreed.slots)
	c.net.OnControl(c.hear)
	c.net.OnGone(c.lost)
	pool.Net().Tune(c.netOptions())
	c.ports = c.net
	c.fars = make([]*links.Far, c.n)
	if c.near != nil {
		c.ports = newMixedPorts(c.near, c.net, c.queue)
	}
	terms := c.linkTerms()
	for r := range c.n {
		if r == c.rank {
			continue
		}
		var link *tcp.Link
		link, c.fars[r] = pool.Reach(&links.Tie{User: user{c}, Here: c.rank, There: r, Peer: &c.peers[r], Remote: c.isRemote(r), Terms: terms})
		if err := c.net.Join(r, link); err != nil {
			return failf(ResultOf(err), "rank %d cannot be joined to rank %d: %w", c.rank, r, err).of(r)
		}
	}
	return nil
}

// connectAll waits until this rank's process has a connection to that of each other rank.
func (c *Comm) connectAll(lim boot.Limit) error {
	for r, f := range c.fars {
		if f == nil {
			continue
		}
		if err := f.Connect(lim); err != nil {
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
