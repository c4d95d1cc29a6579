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
	Handle     Handle // nil where Color is negative
	Color, Key int32  // a colour that cannot be is exchanged too, so that all ranks are refused
	Blocking   bool
	Name       string

	child  *Comm       // nil where Color is negative
	secret secret      // of the child
	inbox  *boot.Inbox // for its connections
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
	if parent.n > 1 && s.Color >= 0 {
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

// finishSplits makes the children of a batch, all at once, since ranks that one thread holds wait for each other. Splits that have
// failed by now get none.
func finishSplits(items []Item) {
	var wg sync.WaitGroup
	for i := range items {
		it := &items[i]
		switch {
		case it.Split == nil:
		case it.Err == nil && it.refuses():
		case it.Split.Color < 0:
		case it.Err == nil:
			wg.Go(func() { it.Err = it.Split.makeChild(it.Comm) })
		default:
			it.Split.abandon(it.Err)
		}
	}
	wg.Wait()
}

// refuses reports whether a rank gave a colour that cannot be: then no rank gets a communicator, and all have the same error.
func (it *Item) refuses() bool {
	s := it.Split
	for r := range it.Comm.n {
		if color := int32(binary.LittleEndian.Uint32(s.all[r*splitBytes:])); color < NoColor {
			it.Err = failf(InvalidArgument, "rank %d split %s with colour %d, which is negative and not NCCL_SPLIT_NOCOLOR (-1); no rank gets a "+
				"communicator", r, it.Comm.label(), color)
			if s.child != nil {
				s.abandon(it.Err)
			}
			return true
		}
	}
	return false
}

// announceSplits registers the children to be made, so that they can be asked for their state, or aborted, from now on.
func announceSplits(items []Item, awaited bool) {
	for i := range items {
		s, parent := items[i].Split, items[i].Comm
		if s == nil || s.Color < 0 {
			continue
		}
		s.child = &Comm{id: s.ID, handle: s.Handle, device: parent.device, blocking: s.Blocking, awaited: awaited, name: s.Name,
			log: parent.log, settings: parent.settings, queue: parent.queue, shut: make(chan struct{})}
		register(s.child)
	}
}

// abandon ends a split that failed before its child was begun.
func (s *SplitSpec) abandon(err error) {
	if s.inbox != nil {
		s.inbox.Close()
	}
	_ = s.child.unbuild(err)
}

func (s *SplitSpec) makeChild(parent *Comm) error {
	if s.inbox != nil {
		defer s.inbox.Close()
	}
	c := s.child
	c.phases.begin()
	if err := c.build(func() error { return s.connect(parent) }); err != nil {
		return err
	}
	c.introduce("split off")
	return nil
}

// connect gives the child its ranks and joins them.
func (s *SplitSpec) connect(parent *Comm) error {
	c := s.child
	ms := s.members(parent.n)
	c.n, c.rank = len(ms), slices.IndexFunc(ms, func(m member) bool { return m.rank == parent.rank })
	c.log, c.agreed, c.secret = log.Rank(c.rank), parent.agreed, s.secret
	c.prepare()
	for _, m := range ms {
		p := wire.Peer{}
		if parent.n > 1 {
			p = parent.peers[m.rank]
			if d := parent.agreed.devices[m.rank]; d >= 0 {
				p.Device = int32(d) // which it keeps
			}
		}
		p.SegmentKey, p.Door = m.segment, m.door
		c.peers = append(c.peers, p)
	}
	return s.connectChild()
}

// connectChild joins the child's ranks. What the parent's ranks failed to share is not tried again: its agreement says so.
func (s *SplitSpec) connectChild() error {
	c := s.child
	deadline := time.Now().Add(c.settings.InitTimeout)
	if err := c.lay(s.inbox, deadline); err != nil || c.n == 1 {
		return err
	}
	return c.connect(s.inbox, deadline)
}
