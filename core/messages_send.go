package core

import "hccl.dev/hccl/proto/wire"

// room is what messages to a peer take of slices.
type room struct {
	eager uint64 // bytes up to which a message goes at once and waits at its receiver; a longer one waits for its receive
	least uint64 // what is asked for at least
}

// Waiting for the receive costs a turn there and back: nearly nothing in shared memory, and 40 % of the time of 32 KiB between hosts. In
// shared memory a port keeps room for each message that may go at once, from the start: to get more, it waits until all has been read,
// which a small message behind a smaller one must not.
const (
	nearEager = 8 << 10
	farEager  = 32 << 10
)

func (c *Comm) roomFor(peer int) room {
	near, eager := c.isNear(peer), uint64(farEager)
	switch {
	case c.agreed.eager >= 0:
		eager = uint64(c.agreed.eager)
	case near:
		eager = nearEager
	}
	if near {
		return room{eager, wire.FrameSize + eager}
	}
	return room{eager, wire.FrameSize}
}

// clearAnnounced tells the peer which announced messages may flow.
func (ms *messages) clearAnnounced(l *line) (bool, error) {
	moved := false
	for len(l.clear) > 0 && !l.put.active {
		p, err := l.out.Reserve(l.room.least, 0)
		if p == 0 || err != nil {
			return moved, err
		}
		*wire.FrameAt(p) = wire.Frame{Version: wire.Version, Kind: wire.Clear, ID: l.clear[0]}
		l.out.Commit(wire.FrameSize)
		l.clear = append(l.clear[:0], l.clear[1:]...)
		moved = true
	}
	return moved, nil
}

// pushSends moves what is to be sent. Headers leave in call order; the data of a cleared message flows beside later headers.
func (ms *messages) pushSends(l *line) (bool, error) {
	moved, held := false, false
	for i := 0; i < len(l.sends); {
		m := l.sends[i]
		ready := m.state == flowing || (m.state == waiting && !held)
		if ready {
			mv, err := ms.pushOne(l, m)
			if err != nil {
				return moved, err
			}
			moved = moved || mv
		}
		held = held || m.state == waiting
		if m.state == finished {
			l.sends = drop(l.sends, i)
			continue
		}
		i++
	}
	return moved, nil
}

// pushOne sends frames of m until there is no room or nothing is left to send for now.
func (ms *messages) pushOne(l *line, m *message) (moved bool, err error) {
	for {
		if l.put.active {
			if l.put.msg != m || !l.put.fence.Done() {
				return moved, nil
			}
			ms.commit(l)
			moved = true
		}
		if m.state != waiting && m.state != flowing {
			return moved, nil
		}
		ok, err := ms.fill(l, m)
		if !ok || err != nil {
			return moved, err
		}
	}
}

// fill reserves a frame for the next part of m and starts the copy of its payload.
func (ms *messages) fill(l *line, m *message) (bool, error) {
	f := wire.Frame{Version: wire.Version, Type: uint8(m.call.Type), Tag: m.call.Tag, ID: m.id, Count: m.call.Count}
	switch {
	case m.state == flowing:
		f.Kind, f.Offset, f.Bytes = wire.Data, m.moved, min(m.bytes()-m.moved, dataBytes)
	case m.bytes() <= l.room.eager:
		f.Kind, f.Bytes = wire.Eager, m.bytes()
	default:
		f.Kind = wire.Announce
	}
	p, err := l.out.Reserve(max(wire.FrameSize+f.Bytes, l.room.least), 0)
	if p == 0 || err != nil {
		return false, err
	}
	*wire.FrameAt(p) = f
	ms.cmd[0].Shared = true
	fence, err := ms.copyBytes(p+wire.FrameSize, m.call.Send+ptrOffset(m.moved), f.Bytes)
	ms.cmd[0].Shared = false
	l.put = transfer{active: true, fence: fence, msg: m, frame: wire.FrameSize + f.Bytes, bytes: f.Bytes}
	return err == nil, err
}

// commit hands the filled frame over and steps the message's state.
func (ms *messages) commit(l *line) {
	m := l.put.msg
	l.out.Commit(l.put.frame)
	m.moved += l.put.bytes
	l.put = transfer{}
	switch {
	case m.moved == m.bytes():
		ms.finish(m)
	case m.state == waiting:
		m.state = announced
	}
}
