package core

import (
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto/wire"
	"hccl.dev/hccl/shm"
)

// message is one Send or Recv on its way. The sides of a message find each other by (communicator, sender, receiver), then tag,
// then order.
//
//	send: queued ─► eager frame out ─► done
//	      queued ─► announced ─► cleared ─► data out ─► done
//	recv: posted ─► matched (eager: done) ─► data in ─► done
type message struct {
	call  Call
	id    uint64 // the sender's number; a receive has it once matched
	moved uint64 // payload bytes
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
}

// inbox holds, for one sender, the receives that wait and the messages that wait for a receive.
type inbox struct {
	posted []*message
	early  []arrival
}

// post looks for an early message that fits and takes it out; otherwise the receive waits.
func (b *inbox) post(m *message) (arrival, bool) {
	for i := range b.early {
		if b.early[i].frame.Tag == m.call.Tag {
			a := b.early[i]
			b.early = append(b.early[:i], b.early[i+1:]...)
			return a, true
		}
	}
	b.posted = append(b.posted, m)
	return arrival{}, false
}

// match finds the oldest receive for a message that came and takes it out, or nil.
func (b *inbox) match(tag int32) *message {
	for i, m := range b.posted {
		if m.call.Tag == tag {
			b.posted = append(b.posted[:i], b.posted[i+1:]...)
			return m
		}
	}
	return nil
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
	if f.Count == m.call.Count && coll.DataType(f.Type) == m.call.Type {
		return nil
	}
	return &clash{from: from, to: to,
		sent:   shm.Header{Func: coll.Send, Type: coll.DataType(f.Type), Count: f.Count, Root: int32(to)},
		wanted: shm.Header{Func: coll.Recv, Type: m.call.Type, Count: m.call.Count, Root: int32(from)}}
}
