package tcp

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"hccl.dev/hccl/proto"
)

// maxQueued bounds the control messages that a peer has not heard yet.
const maxQueued = 256 << 10

// peer is what a rank keeps for another one: the flows both ways, what waits to be sent, and the rails that carry it.
//
// Whoever commits sends, and holds the tx baton: it alone decides which rail takes which slice.
type peer struct {
	f     *Fabric
	rank  int
	omit  bool                           // it reads no port to all
	rails [MaxRails]atomic.Pointer[conn] // nil: never there. A dead one stays until another takes its place
	out   flowTable[outFlow]
	in    flowTable[inFlow]

	// One bit for each channel of a kind. A bit is set after what it announces, and cleared before it is looked for.
	ready [proto.Msg + 1]atomic.Uint64 // flows with committed slices
	owed  [proto.Msg + 1]atomic.Uint64 // flows whose reader wants to tell how far it is
	acks  [proto.Msg + 1]atomic.Uint64 // flows some of whose slices have been acked

	orphans atomic.Uint32 // bits of rails whose unacked slices others are to take
	drops   atomic.Uint32 // bits of rails that the peer is to be told of as given up
	heard   atomic.Uint64 // control messages heard; written by the holder of the fabric's rx baton
	replies atomic.Bool   // the peer is to be told of heard

	stuck   atomic.Int64               // nanoseconds for which nothing has moved on any rail
	gone    atomic.Pointer[goneReason] // set once
	leavers uint32                     // bits of the rails by which the peer says goodbye; guarded by the fabric's rx baton

	tx   baton
	lead uint8  // the rail that control messages go by; guarded by tx
	bye  uint32 // bits of the rails that have a goodbye, 0: it is not time yet; guarded by tx

	mu      sync.Mutex
	queued  []byte      // control frames that the peer has not heard, whole, in order; guarded by mu
	first   uint64      // number of the first of them; guarded by mu
	count   int         // how many; guarded by mu
	put     int         // bytes of queued that the lead has taken; guarded by mu
	leaving bool        // a goodbye follows when nothing else waits; guarded by mu
	news    atomic.Bool // put < len(queued), or leaving: spares the sender of slices the mutex; written under mu
}

type goneReason struct{ err error }

// lost is nil while the peer is there.
func (p *peer) lost() error {
	if g := p.gone.Load(); g != nil {
		return g.err
	}
	return nil
}

// lose marks the peer as gone, for the first reason given, and tells core.
func (p *peer) lose(err error) {
	p.stuck.Store(0)
	if p.gone.CompareAndSwap(nil, &goneReason{err}) && p.f.onGone != nil && !p.f.closed.Load() {
		p.f.onGone(p.rank, err)
	}
}

// live are the bits of the rails that take slices.
func (p *peer) live() (mask uint32) {
	for k := range p.rails {
		if c := p.rails[k].Load(); c != nil && c.state.Load() == railLive {
			mask |= 1 << k
		}
	}
	return mask
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving {
		return errClosed
	}
	if len(p.queued)+headerSize+len(b) > maxQueued {
		return fmt.Errorf("rank %d does not read: %d bytes of control messages wait for it", p.rank, len(p.queued))
	}
	var head [headerSize]byte
	h := header{typ: frameControl, length: uint32(len(b)), seq: p.first + uint64(p.count)}
	h.encode(head[:])
	p.queued = append(append(p.queued, head[:]...), b...)
	p.count++
	p.news.Store(true)
	return nil
}

// takeQueued appends the control frames that the lead has not taken to b, about most bytes.
func (p *peer) takeQueued(b []byte, most int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.put < len(p.queued) && len(b) < most {
		n := frameBytes(p.queued[p.put:])
		b = append(b, p.queued[p.put:p.put+n]...)
		p.put += n
	}
	p.news.Store(p.leaving || p.put < len(p.queued))
	return b
}

// forget frees the messages before number n, which the peer has heard. It returns what is wrong with n.
func (p *peer) forget(n uint64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.first+uint64(p.count) {
		return fmt.Sprintf("%d control messages heard, with %d sent", n, p.first+uint64(p.count))
	}
	at := 0
	for ; p.first < n; p.first++ {
		at += frameBytes(p.queued[at:])
		p.count--
	}
	p.queued = append(p.queued[:0], p.queued[at:]...)
	p.put = max(p.put-at, 0)
	return ""
}

// recall has the next lead send everything that the peer has not heard.
func (p *peer) recall() {
	p.mu.Lock()
	p.put = 0
	p.news.Store(p.leaving || len(p.queued) > 0)
	p.mu.Unlock()
}

// frameBytes is the length of the control frame at the front of b.
func frameBytes(b []byte) int { return headerSize + int(binary.LittleEndian.Uint32(b[8:])) }

func (p *peer) leave() {
	p.mu.Lock()
	p.leaving = true
	p.news.Store(true)
	p.mu.Unlock()
}

// done reports whether this rank is leaving and everything else has been taken.
func (p *peer) done() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaving && p.put == len(p.queued)
}

// idle reports whether no flow has a slice to send.
func (p *peer) idle() bool {
	for kind := range p.ready {
		if p.ready[kind].Load() != 0 {
			return false
		}
	}
	return true
}

// flows calls do for every channel whose bit is set, and clears it.
func (p *peer) flows(set *[proto.Msg + 1]atomic.Uint64, do func(kind proto.Kind, channel int)) {
	for kind := range set {
		if set[kind].Load() == 0 {
			continue
		}
		for w := set[kind].Swap(0); w != 0; w &= w - 1 {
			do(proto.Kind(kind), bits.TrailingZeros64(w))
		}
	}
}

// drop frees all staging. Nobody uses the flows any more.
func (p *peer) drop() {
	p.out.each((*outFlow).drop)
	p.in.each((*inFlow).drop)
}
