package core

import (
	"slices"

	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto/wire"
	"hccl.dev/hccl/shm"
)

// message is one Send or Recv on its way. The sides of a message find each other by (communicator, sender, receiver), then tag,
// then order. A receive from any source, or of any tag, takes the message that came first of those that fit; of several receives
// that a message fits it takes the one that was made first.
//
//	send: queued ─► eager frame out ─► done
//	      queued ─► announced ─► cleared ─► data out ─► done
//	recv: posted ─► matched (eager: done) ─► data in ─► done
type message struct {
	call  Call
	id    uint64 // the sender's number; a receive has it once matched
	moved uint64 // payload bytes
	order uint64 // recv: when it was made, among all of this rank's
	state messageState
}

type messageState uint8

const (
	waiting messageState = iota // send: its header is not out; recv: nothing has matched
	announced
	flowing // cleared: data goes
	finished
)

func (m *message) bytes() uint64 { return m.call.Count * m.call.Type.Size() }

// arrival is a message that came before its receive: an eager one with its payload, or an announcement.
type arrival struct {
	frame   wire.Frame
	payload []byte // eager only
	order   uint64 // when it came, among those from all peers
}

// inbox holds, for one sender, the receives that wait and the messages that wait for a receive.
type inbox struct {
	posted []*message
	early  []arrival
}

// unmet reports whether m is a receive that no message has met.
func (m *message) unmet() bool { return m.call.Func == coll.Recv && m.state == waiting }

// fits reports whether a receive takes messages with this tag.
func (m *message) fits(tag int32) bool { return m.call.Tag == tag || m.call.Tag == AnyTag }

// first is the place of the first early message that fits m, -1 if none does.
func (b *inbox) first(m *message) int {
	for i := range b.early {
		if m.fits(b.early[i].frame.Tag) {
			return i
		}
	}
	return -1
}

// take takes an early message out.
func (b *inbox) take(i int) arrival {
	a := b.early[i]
	b.early = append(b.early[:i], b.early[i+1:]...)
	return a
}

// firstFor is the place of the first receive of list that takes a tag, -1 if none does.
func firstFor(list []*message, tag int32) int {
	for i, m := range list {
		if m.fits(tag) {
			return i
		}
	}
	return -1
}

// claim looks for an early message that a new receive takes, in one peer's inbox or in all; nil if there is none.
func (ms *messages) claim(m *message) (from *line, a arrival) {
	at := -1
	for _, l := range ms.lines {
		if l == nil || m.call.Root != AnySource && m.call.Root != l.peer {
			continue
		}
		if i := l.inbox.first(m); i >= 0 && (from == nil || l.inbox.early[i].order < from.inbox.early[at].order) {
			from, at = l, i
		}
	}
	if from == nil {
		return nil, a
	}
	return from, from.inbox.take(at)
}

// match finds the oldest receive for a message that came over l and takes it out, or nil.
func (ms *messages) match(l *line, tag int32) (m *message) {
	one, each := firstFor(l.inbox.posted, tag), firstFor(ms.any, tag)
	switch {
	case one >= 0 && (each < 0 || l.inbox.posted[one].order < ms.any[each].order):
		m = l.inbox.posted[one]
		l.inbox.posted = drop(l.inbox.posted, one)
	case each >= 0:
		m = ms.any[each]
		ms.any = drop(ms.any, each)
		ms.after = l.peer
	}
	return m
}

// accept joins a receive with the message that f announces: from here on it is one from that peer, of that tag and length.
func (ms *messages) accept(l *line, m *message, f *wire.Frame) error {
	if err := disagrees(f, m, l.peer, ms.me); err != nil {
		return err
	}
	m.call.Root, m.call.Tag, m.call.Count = l.peer, f.Tag, f.Count
	if s := m.call.Status; s != nil {
		*s = Status{Source: int32(l.peer), Tag: f.Tag, Bytes: m.bytes()}
	}
	return nil
}

// withdraw takes receives out that no message has met. It does so if all that is unfinished of list are such.
func (ms *messages) withdraw(list []*message) bool {
	for _, m := range list {
		if m.state != finished && !m.unmet() {
			return false
		}
	}
	for _, m := range list {
		if m.state != finished {
			ms.remove(m)
		}
	}
	return true
}

// remove takes out one receive that waits for a message.
func (ms *messages) remove(m *message) {
	list := &ms.any
	if m.call.Root != AnySource {
		list = &ms.lines[m.call.Root].inbox.posted
	}
	*list = drop(*list, slices.Index(*list, m))
	ms.finish(m)
}

// findByID finds the matched receive of the message with this number.
func findByID(list []*message, id uint64) *message {
	for _, m := range list {
		if m.id == id && m.state == flowing {
			return m
		}
	}
	return nil
}

// clash is a message and a receive that do not fit each other.
type clash struct {
	from, to int // ranks
	sent     shm.Header
	wanted   shm.Header
}

func (e *clash) Error() string { return "a message and its receive differ" }

// disagrees says how a message and its receive differ, or nil.
func disagrees(f *wire.Frame, m *message, from, to int) error {
	if (f.Count == m.call.Count || m.call.UpTo && f.Count < m.call.Count) && coll.DataType(f.Type) == m.call.Type {
		return nil
	}
	return &clash{from: from, to: to,
		sent:   shm.Header{Func: coll.Send, Type: coll.DataType(f.Type), Count: f.Count, Root: int32(to)},
		wanted: shm.Header{Func: coll.Recv, Type: m.call.Type, Count: m.call.Count, Root: int32(from)}}
}
