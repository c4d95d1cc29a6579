package core

import (
	"runtime"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/wire"
)

const dataBytes = 128 << 10 // payload of a data frame, and the most that an eager one may be allowed to have

// messageTag is that of all slices of message ports: messages have numbers of their own, in their frames.
var messageTag proto.Tag

// messages moves the point-to-point messages of one rank of a communicator. Nothing in it blocks: advance does what can be done
// now. Only the thread that holds the communicator's turn calls it.
type messages struct {
	me    int
	rooms func(peer int) room
	lines []*line // by peer, made at first use
	ports proto.Ports
	queue device.Queue
	live  int        // messages that are not finished
	own   int        // of those: not of requests
	ended []*message // of requests, finished, not told yet
	any   []*message // receives from any source that wait
	after int        // the peer whose message met one of them last: others come first next time
	order uint64     // of the next receive, or of the next message that comes before its receive
	free  []*message
	cmd   [1]device.Cmd // of copyBytes, which would allocate it at each call
}

// line carries the messages between this rank and one peer, both ways.
type line struct {
	peer  int
	room  room
	out   proto.Out
	in    proto.In
	next  uint64 // number of the next message to the peer
	sends []*message
	inbox inbox
	open  []*message // matched receives whose data is on its way
	clear []uint64   // announced messages to be cleared
	put   transfer   // the frame that is being filled
	got   transfer   // the frame whose payload is being copied out
}

// transfer is a copy between a frame and a user's buffer: submitted, then done when its fence is.
type transfer struct {
	active bool
	fence  device.Fence
	msg    *message
	frame  uint64 // bytes of the slice to commit
	bytes  uint64 // payload
}

func newMessages(me, n int, rooms func(peer int) room, ports proto.Ports, queue device.Queue) *messages {
	ms := &messages{me: me, rooms: rooms, lines: make([]*line, n), ports: ports, queue: queue}
	ms.cmd[0] = device.Cmd{Op: device.Copy, SrcType: coll.Uint8, Acc: coll.Uint8, DstType: coll.Uint8, NSrc: 1, NDst: 1, Scaled: -1}
	return ms
}

// start queues a message. It is finished some advances later; the caller keeps it until then and gives it back by release.
func (ms *messages) start(c *Call) (*message, error) {
	if c.Root == AnySource {
		return ms.startAny(c)
	}
	l, err := ms.open(c.Root)
	if err != nil {
		return nil, err
	}
	m := ms.take(c)
	if c.Func == coll.Send {
		m.id = l.next
		l.next++
		l.sends = append(l.sends, m)
		return m, nil
	}
	l.inbox.posted, err = ms.post(m, l.inbox.posted)
	return m, err
}

// startAny starts a receive from any source: all peers are listened to from here on.
func (ms *messages) startAny(c *Call) (m *message, err error) {
	for peer := range ms.lines {
		if _, err := ms.open(peer); err != nil {
			return nil, err
		}
	}
	m = ms.take(c)
	ms.any, err = ms.post(m, ms.any)
	return m, err
}

// open makes the line to a peer ready.
func (ms *messages) open(peer int) (*line, error) {
	l, err := ms.line(peer)
	if err == nil && l.out != nil { // also where this rank only receives: it answers announcements
		l.out.Begin(messageTag, 1)
		l.in.Begin(messageTag)
	}
	return l, err
}

// post gives a receive the message that came before it, or puts it into the list of those that wait.
func (ms *messages) post(m *message, list []*message) ([]*message, error) {
	m.order = ms.order
	ms.order++
	l, a := ms.claim(m)
	if l == nil {
		return append(list, m), nil
	}
	err := ms.accept(l, m, &a.frame)
	if err == nil {
		err = ms.matched(l, m, &a.frame, device.BytesPtr(a.payload))
		runtime.KeepAlive(a.payload)
	}
	return list, err
}

// keep puts a message aside that came before its receive.
func (ms *messages) keep(l *line, a arrival) {
	a.order = ms.order
	ms.order++
	l.inbox.early = append(l.inbox.early, a)
}

func (ms *messages) take(c *Call) (m *message) {
	if n := len(ms.free); n > 0 {
		m = ms.free[n-1]
		ms.free = ms.free[:n-1]
		*m = message{}
	} else {
		m = new(message)
	}
	m.call = *c
	ms.live++
	if c.req == nil {
		ms.own++
	}
	return m
}

func (ms *messages) release(m *message) { ms.free = append(ms.free, m) }

func (ms *messages) line(peer int) (*line, error) {
	if l := ms.lines[peer]; l != nil {
		return l, nil
	}
	l := &line{peer: peer, room: ms.rooms(peer)}
	if peer != ms.me {
		var err error
		if l.out, err = ms.ports.Out(proto.Msg, 0, peer); err != nil {
			return nil, err
		}
		if l.in, err = ms.ports.In(proto.Msg, 0, peer); err != nil {
			return nil, err
		}
	}
	ms.lines[peer] = l
	return l, nil
}

// advance does what can be done now for all peers.
func (ms *messages) advance() (moved bool, err error) {
	for k := range ms.lines {
		l := ms.lines[ms.fairly(k)]
		if l == nil || !l.busy() && len(ms.any) == 0 {
			continue
		}
		mv, err := ms.advanceLine(l)
		if err != nil {
			return moved, err
		}
		moved = moved || mv
	}
	return moved, nil
}

// fairly is the kth peer to be looked at: receives from any source take from one after the other.
func (ms *messages) fairly(k int) int {
	if len(ms.any) == 0 {
		return k
	}
	return (ms.after + 1 + k) % len(ms.lines)
}

func (l *line) busy() bool {
	return len(l.sends)+len(l.inbox.posted)+len(l.open)+len(l.clear) > 0 || l.put.active || l.got.active
}

// waitsFor reports whether something of a peer, its message or room to write, is waited for.
func (ms *messages) waitsFor(peer int) bool {
	l := ms.lines[peer]
	return l != nil && l.busy()
}

// blocker is a peer whose message or room is waited for, -1 if none.
func (ms *messages) blocker() int {
	for _, l := range ms.lines {
		if l != nil && l.busy() {
			return l.peer
		}
	}
	return -1
}

func (ms *messages) advanceLine(l *line) (bool, error) {
	if l.peer == ms.me {
		return ms.advanceSelf(l)
	}
	a, err := ms.clearAnnounced(l)
	if err != nil {
		return a, err
	}
	b, err := ms.pushSends(l)
	if err != nil {
		return a || b, err
	}
	c, err := ms.pullFrames(l)
	return a || b || c, err
}

func (ms *messages) finish(m *message) {
	m.state = finished
	ms.live--
	if m.call.req != nil {
		ms.ended = append(ms.ended, m)
	} else {
		ms.own--
	}
}

// copyBytes submits a copy of n bytes.
func (ms *messages) copyBytes(dst, src device.Ptr, n uint64) (device.Fence, error) {
	if n == 0 {
		return device.Fence{}, nil
	}
	cmd := &ms.cmd[0]
	cmd.N, cmd.Dst[0], cmd.Src[0] = n, dst, src
	return ms.queue.Submit(ms.cmd[:])
}

// drop removes element i, keeping the order.
func drop(list []*message, i int) []*message {
	copy(list[i:], list[i+1:])
	list[len(list)-1] = nil
	return list[:len(list)-1]
}

// advanceSelf pairs messages of this rank to itself: in order, by tag. A small one whose receive is not there is kept aside, unless
// a larger one before it waits.
func (ms *messages) advanceSelf(l *line) (moved bool, err error) {
	for i := 0; i < len(l.sends); {
		s := l.sends[i]
		r := ms.match(l, s.call.Tag)
		if r == nil && (i > 0 || s.bytes() > l.room.eager) {
			i++
			continue
		}
		if err := ms.deliverSelf(l, s, r); err != nil {
			return moved, err
		}
		l.sends = drop(l.sends, i)
		ms.finish(s)
		moved = true
	}
	return moved, nil
}

func (ms *messages) deliverSelf(l *line, s, r *message) error {
	f := wire.Frame{Kind: wire.Eager, Tag: s.call.Tag, Count: s.call.Count, Type: uint8(s.call.Type), Bytes: s.bytes()}
	if r == nil {
		a := arrival{frame: f, payload: make([]byte, s.bytes())}
		ms.keep(l, a)
		_, err := ms.copyBytes(device.BytesPtr(a.payload), s.call.Send, s.bytes())
		return err
	}
	if err := ms.accept(l, r, &f); err != nil {
		return err
	}
	_, err := ms.copyBytes(r.call.Recv, s.call.Send, s.bytes())
	ms.finish(r)
	return err
}
