// Package porttest is what tests of plans and of transports need: ports in memory, a queue that computes in plain Go, and
// Conformance, the suite that every transport's ports must pass.
//
// It is imported by tests alone. The ports are bounded queues under a mutex: simple enough to be right by reading, and usable from
// one goroutine that drives all ranks in turn as well as from one goroutine for each.
package porttest

import (
	"sync"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/proto"
)

// Net connects ranks through memory of this process.
type Net struct {
	mu    sync.Mutex
	n     int
	slots int
	lines map[key]*line
}

type key struct {
	kind           proto.Kind
	channel        int
	writer, reader int // reader is -1 for All
}

// NewNet connects n ranks by ports of so many slots.
func NewNet(n, slots int) *Net { return &Net{n: n, slots: slots, lines: map[key]*line{}} }

// Ports are those of one rank.
func (n *Net) Ports(rank int) proto.Ports { return &ports{n, rank} }

// Empty reports whether no port holds a slice.
func (n *Net) Empty() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lines {
		if !l.empty() {
			return false
		}
	}
	return true
}

type ports struct {
	net  *Net
	rank int
}

func (p *ports) Out(kind proto.Kind, channel, peer int) (proto.Out, error) {
	return &out{l: p.net.line(kind, channel, p.rank, peer)}, nil
}

func (p *ports) In(kind proto.Kind, channel, peer int) (proto.In, error) {
	return &in{l: p.net.line(kind, channel, peer, p.rank), rank: p.rank}, nil
}

func (n *Net) line(kind proto.Kind, channel, writer, reader int) *line {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kind == proto.All {
		reader = -1
	}
	k := key{kind, channel, writer, reader}
	l := n.lines[k]
	if l == nil {
		l = &line{slots: make([]slot, n.slots), taken: make([]uint64, n.n)}
		for r := range n.n {
			if r == reader || reader < 0 && r != writer {
				l.readers = append(l.readers, r)
			}
		}
		n.lines[k] = l
	}
	return l
}

// line is one port: a ring of slots. head counts slices written, taken those that each reader has released.
type line struct {
	mu      sync.Mutex
	slots   []slot
	head    uint64
	taken   []uint64
	readers []int
}

type slot struct {
	tag proto.Tag
	buf []byte
	n   uint64
}

// slowest is the reader that has released the fewest slices. l.mu is held.
func (l *line) slowest() int {
	s := l.readers[0]
	for _, r := range l.readers {
		if l.taken[r] < l.taken[s] {
			s = r
		}
	}
	return s
}

func (l *line) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.readers) == 0 || l.taken[l.slowest()] == l.head
}

func (l *line) full() bool { return l.head-l.taken[l.slowest()] >= uint64(len(l.slots)) }

type out struct {
	l   *line
	tag proto.Tag
}

func (o *out) Begin(t proto.Tag, _ int) { o.tag = t }

func (o *out) Reserve(n uint64, _ device.Ptr) (device.Ptr, error) {
	o.l.mu.Lock()
	defer o.l.mu.Unlock()
	if o.l.full() {
		return 0, nil
	}
	s := &o.l.slots[o.l.head%uint64(len(o.l.slots))]
	if uint64(len(s.buf)) < n || s.buf == nil {
		s.buf = make([]byte, max(n, 64))
	}
	return device.BytesPtr(s.buf), nil
}

func (o *out) Commit(n uint64) {
	o.l.mu.Lock()
	defer o.l.mu.Unlock()
	s := &o.l.slots[o.l.head%uint64(len(o.l.slots))]
	s.tag, s.n = o.tag, n
	o.l.head++
}

func (o *out) Blocker() int {
	o.l.mu.Lock()
	defer o.l.mu.Unlock()
	if o.l.full() {
		return o.l.slowest()
	}
	return -1
}

type in struct {
	l    *line
	rank int
	tag  proto.Tag
}

func (i *in) Begin(t proto.Tag) { i.tag = t }

func (i *in) Peek() (device.Ptr, uint64, error) {
	i.l.mu.Lock()
	defer i.l.mu.Unlock()
	at := i.l.taken[i.rank]
	if at == i.l.head {
		return 0, 0, nil
	}
	s := &i.l.slots[at%uint64(len(i.l.slots))]
	if s.tag != i.tag {
		return 0, 0, proto.ErrTag
	}
	return device.BytesPtr(s.buf), s.n, nil
}

func (i *in) Release() {
	i.l.mu.Lock()
	defer i.l.mu.Unlock()
	i.l.taken[i.rank]++
}
