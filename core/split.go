package core

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/proto/wire"
	"hccl.dev/hccl/shm"
)

// SplitSpec is a part of a communicator to be split off. A split is an all-gather of colours and keys on the parent; then the
// ranks of each colour connect, with nothing of the bootstrap but what the parent knows of them.
type SplitSpec struct {
	ID         uint64 // the child's number in this process
	Handle     Handle // nil where Color is NoColor
	Color, Key int32
	Blocking   bool
	Name       string

	secret secret      // of the child
	inbox  *boot.Inbox // for its connections, where the parent has them too
	mine   []byte
	all    []byte
}

// NoColor is the colour of a rank that gets no communicator.
const NoColor = -1

func bytesPtr(b []byte) device.Ptr { return device.BytesPtr(b) }

// exchange prepares the first half: every rank tells colour, key, the key of a segment it may have to offer, and its door.
func (s *SplitSpec) exchange(parent *Comm) (*Call, error) {
	s.secret = childSecret(parent.secret, parent.splits, s.Color)
	parent.splits++
	s.mine, s.all = make([]byte, splitBytes), make([]byte, splitBytes*parent.n)
	binary.LittleEndian.PutUint32(s.mine, uint32(s.Color))
	binary.LittleEndian.PutUint32(s.mine[4:], uint32(s.Key))
	key := newKey()
	copy(s.mine[8:], key[:])
	if parent.net != nil && s.Color != NoColor {
		svc, err := boot.Default()
		if err != nil {
			return nil, err
		}
		door := svc.NewKey()
		copy(s.mine[24:], door[:])
		s.inbox = svc.Expect(door, s.secret[:])
	}
	return splitCall(s.mine, s.all), nil
}

// member is a rank of the parent in a child.
type member struct {
	rank    int // in the parent
	key     int32
	segment shm.Key
	door    boot.Key
}

// members lists the ranks of this colour by (key, rank in the parent).
func (s *SplitSpec) members(n int) []member {
	var out []member
	for r := range n {
		b := s.all[r*splitBytes:]
		if int32(binary.LittleEndian.Uint32(b)) == s.Color {
			out = append(out, member{rank: r, key: int32(binary.LittleEndian.Uint32(b[4:])), segment: shm.Key(b[8:24]), door: boot.Key(b[24:40])})
		}
	}
	slices.SortStableFunc(out, func(a, b member) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return 0
	})
	return out
}

// finishSplits makes the children of a batch, all at once, since ranks that one thread holds wait for each other.
func finishSplits(items []Item) error {
	var wg sync.WaitGroup
	for i := range items {
		it := &items[i]
		if it.Split == nil || it.Err != nil || it.Split.Color == NoColor {
			continue
		}
		wg.Go(func() { it.Err = it.Split.makeChild(it.Comm) })
	}
	wg.Wait()
	return firstError(items)
}

// closeInboxes ends the splits of a batch that failed.
func closeInboxes(items []Item) {
	for i := range items {
		if s := items[i].Split; s != nil && s.inbox != nil {
			s.inbox.Close()
		}
	}
}

func (s *SplitSpec) makeChild(parent *Comm) error {
	if s.inbox != nil {
		defer s.inbox.Close()
	}
	start := time.Now()
	ms := s.members(parent.n)
	me := slices.IndexFunc(ms, func(m member) bool { return m.rank == parent.rank })
	c := &Comm{id: s.ID, handle: s.Handle, n: len(ms), rank: me, device: parent.device, blocking: s.Blocking, name: s.Name,
		log: log.Rank(me), settings: parent.settings, agreed: parent.agreed, queue: parent.queue, secret: s.secret}
	c.prepare()
	register(c)
	for _, m := range ms {
		p := wire.Peer{}
		if parent.n > 1 {
			p = parent.peers[m.rank]
		}
		p.SegmentKey, p.Door = m.segment, m.door
		c.peers = append(c.peers, p)
	}
	err := c.connectChild(parent, s)
	if err == nil {
		err = c.finish()
	}
	if err != nil {
		c.forget()
		return c.break_(err)
	}
	c.log.Info(log.Init, "communicator %s: rank %d of %d split off in %.1f ms over %s", c.label(), c.rank, c.n,
		float64(time.Since(start).Microseconds())/1e3, c.transport())
	return nil
}

// connectChild takes the parent's transport: its ranks have proved what they can share.
func (c *Comm) connectChild(parent *Comm, s *SplitSpec) error {
	if c.n == 1 {
		return nil
	}
	deadline := time.Now().Add(c.settings.InitTimeout)
	if parent.net == nil {
		if err := c.joinShared(deadline); err != nil {
			return err
		}
		return c.allLive(deadline)
	}
	c.agreed.share = false
	return c.connect(s.inbox, deadline)
}
