package core

import (
	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/proto/wire"
)

func ptrOffset(n uint64) device.Ptr { return device.Ptr(n) }

// pullFrames takes in what has come from the peer.
func (ms *messages) pullFrames(l *line) (moved bool, err error) {
	for {
		if l.got.active {
			if !l.got.fence.Done() {
				return moved, nil
			}
			ms.consumed(l)
			moved = true
		}
		p, n, err := l.in.Peek()
		if err != nil && !l.busy() {
			return moved, nil // a peer that has given all may leave while others are still waited for
		}
		if p == 0 || err != nil {
			return moved, err
		}
		f, err := readFrame(p, n, l.peer)
		if err != nil {
			return moved, err
		}
		if err := ms.take1(l, &f, p+wire.FrameSize); err != nil {
			return moved, err
		}
		moved = true
	}
}

// readFrame copies a frame's header out of the slice and checks it: the peer's word is not trusted.
func readFrame(p device.Ptr, n uint64, peer int) (wire.Frame, error) {
	if n < wire.FrameSize {
		return wire.Frame{}, failf(InternalError, "rank %d sent a message frame of %d bytes, at least %d are needed", peer, n, wire.FrameSize)
	}
	f := *wire.FrameAt(p)
	if f.Version != wire.Version || f.Bytes != n-wire.FrameSize {
		return f, failf(InternalError, "rank %d sent a message frame of version %d with %d bytes in a slice of %d", peer, f.Version, f.Bytes, n)
	}
	if f.Kind == wire.Eager && f.Bytes != f.Count*coll.DataType(f.Type).Size() {
		return f, failf(InternalError, "rank %d sent a message of %d elements of %v in %d bytes", peer, f.Count, coll.DataType(f.Type), f.Bytes)
	}
	return f, nil
}

// take1 acts on one frame. Frames whose payload is copied are released when the copy is done, others at once.
func (ms *messages) take1(l *line, f *wire.Frame, payload device.Ptr) error {
	switch f.Kind {
	case wire.Clear:
		l.in.Release()
		return l.cleared(f.ID)
	case wire.Data:
		m := findByID(l.open, f.ID)
		if m == nil || f.Offset != m.moved || f.Bytes > m.bytes()-m.moved {
			return failf(InternalError, "rank %d sent data of message %d at offset %d that no receive expects", l.peer, f.ID, f.Offset)
		}
		return ms.copyIn(l, m, f, payload)
	case wire.Eager, wire.Announce:
		return ms.arrived(l, f, payload)
	}
	return failf(InternalError, "rank %d sent a message frame of unknown kind %d", l.peer, f.Kind)
}

func (l *line) cleared(id uint64) error {
	for _, m := range l.sends {
		if m.id == id && m.state == announced {
			m.state = flowing
			return nil
		}
	}
	return failf(InternalError, "rank %d cleared message %d, which was not announced", l.peer, id)
}

// arrived matches a new message with its receive, or keeps it.
func (ms *messages) arrived(l *line, f *wire.Frame, payload device.Ptr) error {
	m := ms.match(l, f.Tag)
	if m == nil {
		a := arrival{frame: *f}
		if f.Kind == wire.Eager {
			a.payload = make([]byte, f.Bytes)
			if _, err := ms.copyBytes(device.BytesPtr(a.payload), payload, f.Bytes); err != nil {
				return err
			}
		}
		ms.keep(l, a)
		l.in.Release()
		return nil
	}
	if err := ms.accept(l, m, f); err != nil {
		return err
	}
	if f.Kind == wire.Eager {
		m.id, m.state = f.ID, flowing
		l.open = append(l.open, m)
		return ms.copyIn(l, m, f, payload)
	}
	defer l.in.Release()
	return ms.matched(l, m, f, 0)
}

// matched joins a receive with a message that came before it, or that is only announced so far.
func (ms *messages) matched(l *line, m *message, f *wire.Frame, payload device.Ptr) error {
	m.id, m.state = f.ID, flowing
	if f.Kind == wire.Announce {
		l.open = append(l.open, m)
		l.clear = append(l.clear, f.ID)
		return nil
	}
	_, err := ms.copyBytes(m.call.Recv, payload, min(f.Bytes, m.bytes()))
	ms.finish(m)
	return err
}

func (ms *messages) copyIn(l *line, m *message, f *wire.Frame, payload device.Ptr) error {
	fence, err := ms.copyBytes(m.call.Recv+ptrOffset(m.moved), payload, f.Bytes)
	l.got = transfer{active: true, fence: fence, msg: m, bytes: f.Bytes}
	return err
}

// consumed releases the slice whose payload has been copied and ends the receive if that was all.
func (ms *messages) consumed(l *line) {
	m := l.got.msg
	m.moved += l.got.bytes
	l.got = transfer{}
	l.in.Release()
	if m.moved < m.bytes() {
		return
	}
	for i := range l.open {
		if l.open[i] == m {
			l.open = drop(l.open, i)
			break
		}
	}
	ms.finish(m)
}
