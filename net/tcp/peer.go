package tcp

import (
	"fmt"
	"sync"
	"sync/atomic"

	"hccl.dev/hccl/proto"
)

// maxQueued bounds the control messages that wait for a peer which does not read.
const maxQueued = 256 << 10

// peer is what a rank keeps for another one: the flows both ways and what waits to be sent. It knows no socket; conn empties it.
type peer struct {
	rank int
	omit bool                 // it reads no port to all
	conn atomic.Pointer[conn] // nil until Add
	out  flowTable[outFlow]
	in   flowTable[inFlow]

	// One bit for each channel of a kind. A bit is set after what it announces, and cleared before it is looked for.
	ready [proto.Msg + 1]atomic.Uint64 // flows with committed slices
	owed  [proto.Msg + 1]atomic.Uint64 // flows whose reader wants to tell how far it is

	gone atomic.Pointer[goneReason] // set once

	mu      sync.Mutex
	queued  []byte      // control frames, whole, in order; guarded by mu
	leaving bool        // a goodbye follows when nothing else waits; guarded by mu
	news    atomic.Bool // queued or leaving: spares the sender of slices the mutex; written under mu
}

type goneReason struct{ err error }

// lost is nil while the peer is there.
func (p *peer) lost() error {
	if g := p.gone.Load(); g != nil {
		return g.err
	}
	return nil
}

// flush sends what waits for p, as far as its socket takes it, and reports whether anything moved.
func (p *peer) flush() bool {
	if c := p.conn.Load(); c != nil {
		return c.flush()
	}
	return false // Add flushes
}

// commit queues s behind the slices of its flow.
func (p *peer) commit(f *outFlow, kind proto.Kind, channel int, s slice) {
	f.push(s)
	p.ready[kind].Or(1 << channel)
}

// control queues a message.
func (p *peer) control(b []byte) error {
	if err := p.lost(); err != nil {
		return err
	}
	var head [headerSize]byte
	h := header{typ: frameControl, length: uint32(len(b))}
	h.encode(head[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving {
		return errClosed
	}
	if len(p.queued)+headerSize+len(b) > maxQueued {
		return fmt.Errorf("rank %d does not read: %d bytes of control messages wait for it", p.rank, len(p.queued))
	}
	p.queued = append(append(p.queued, head[:]...), b...)
	p.news.Store(true)
	return nil
}

// takeQueued hands over the control frames and goes on with the empty buffer, so that two buffers take turns.
func (p *peer) takeQueued(empty []byte) (full []byte, leaving bool) {
	if !p.news.Load() {
		return empty, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queued) == 0 {
		return empty, p.leaving
	}
	full, p.queued = p.queued, empty
	p.news.Store(p.leaving)
	return full, p.leaving
}

func (p *peer) leave() {
	p.mu.Lock()
	p.leaving = true
	p.news.Store(true)
	p.mu.Unlock()
}

// drop frees all staging. Nobody uses the flows any more.
func (p *peer) drop() {
	p.out.each((*outFlow).drop)
	p.in.each((*inFlow).drop)
}
