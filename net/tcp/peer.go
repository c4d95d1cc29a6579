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

// peer is what a rank keeps for another one of its communicator: the flows both ways, and what waits to be sent. The link to its
// process carries it.
type peer struct {
	f           *Fabric
	link        *Link // nil until it is joined
	rank        int
	there, here uint64 // the routes of what is sent and of what comes
	omit        bool   // it reads no port to all
	out         flowTable[outFlow]
	in          flowTable[inFlow]

	// One bit for each channel of a kind. A bit is set after what it announces, and cleared before it is looked for.
	ready [proto.Msg + 1]atomic.Uint64 // flows with committed slices
	owed  [proto.Msg + 1]atomic.Uint64 // flows whose reader wants to tell how far it is
	acks  [proto.Msg + 1]atomic.Uint64 // flows some of whose slices have been acked

	listed  atomic.Bool   // the link knows that something waits here
	below   *peer         // the one listed before it; see Link.fresh
	turn    int           // the flow after the one served last: kind*MaxChannels + channel; guarded by the link's tx baton
	heard   atomic.Uint64 // control messages heard; written by the holder of the rx baton
	replies atomic.Bool   // the peer is to be told of heard

	gone  atomic.Pointer[goneReason] // set once
	quits bool                       // it has said goodbye, which counts once all it ever sent is here; guarded by the rx baton
	total uint64                     // how many slices that is; guarded by the rx baton

	mu      sync.Mutex
	queued  []byte      // control frames that the peer has not heard, whole, in order; guarded by mu
	first   uint64      // number of the first of them; guarded by mu
	count   int         // how many; guarded by mu
	put     int         // bytes of queued that the lead has taken; guarded by mu
	leaving bool        // the goodbye is among them; guarded by mu
	news    atomic.Bool // put < len(queued): spares the sender of slices the mutex; written under mu
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
	if !p.gone.CompareAndSwap(nil, &goneReason{err}) {
		return
	}
	p.f.ends.Lock()
	defer p.f.ends.Unlock()
	if p.f.closed.Load() {
		return
	}
	if p.f.onGone != nil {
		p.f.onGone(p.rank, err)
	}
	p.f.rouse()
}

// commit queues s behind the slices of its flow.
func (p *peer) commit(f *outFlow, kind proto.Kind, channel int, s slice) {
	f.push(s)
	p.ready[kind].Or(1 << channel)
	p.list()
}

// flush sends what waits, for this peer and others on the same link.
func (p *peer) flush() {
	if p.link != nil {
		p.link.flush()
	}
}

// list tells the link that something waits. What waits is there before.
func (p *peer) list() {
	if p.link != nil && !p.listed.Load() && p.listed.CompareAndSwap(false, true) {
		p.link.push(p)
	}
}

// waits reports whether something is to be sent or freed.
func (p *peer) waits() bool {
	for kind := range p.ready {
		if p.ready[kind].Load()|p.owed[kind].Load()|p.acks[kind].Load() != 0 {
			return true
		}
	}
	return p.news.Load() || p.replies.Load()
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

// control queues a message and sends it.
func (p *peer) control(b []byte) error {
	if err := p.lost(); err != nil {
		return err
	}
	if err := p.queue(header{typ: frameControl, length: uint32(len(b))}, b); err != nil {
		return err
	}
	p.list()
	p.flush()
	return nil
}

// leave queues the goodbye, which a flush sends: nothing follows, and the slices committed so far are all there will be.
func (p *peer) leave() {
	total := uint64(0)
	p.out.each(func(f *outFlow) { total += f.committed.Load() })
	if p.queue(header{typ: frameLeave, ack: total}, nil) == nil {
		p.list()
	}
}

func (p *peer) queue(h header, b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving {
		return errClosed
	}
	p.leaving = h.typ == frameLeave
	if !p.leaving && len(p.queued)+headerSize+len(b) > maxQueued {
		return fmt.Errorf("rank %d does not read: %d bytes of control messages wait for it", p.rank, len(p.queued))
	}
	var head [headerSize]byte
	h.route, h.seq = p.there, p.first+uint64(p.count)
	h.encode(head[:])
	p.queued = append(append(p.queued, head[:]...), b...)
	p.count++
	p.news.Store(true)
	return nil
}

// takeQueued appends the control frames that the lead has not taken to b, until it has about most bytes.
func (p *peer) takeQueued(b []byte, most int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.put < len(p.queued) && len(b) < most {
		n := frameBytes(p.queued[p.put:])
		b = append(b, p.queued[p.put:p.put+n]...)
		p.put += n
	}
	p.news.Store(p.put < len(p.queued))
	return b
}

// said reports whether a lead has taken all control messages.
func (p *peer) said() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.put == len(p.queued)
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

// unqueue drops all control messages. Those that no rail has taken leave no gap in the numbers: a peer that has said goodbye may yet hear
// the own one.
func (p *peer) unqueue() {
	p.mu.Lock()
	for at := 0; at < p.put; p.first++ {
		at += frameBytes(p.queued[at:])
	}
	p.queued, p.count, p.put = p.queued[:0], 0, 0
	p.news.Store(false)
	p.mu.Unlock()
}

// recall has the next lead send everything that the peer has not heard.
func (p *peer) recall() {
	p.mu.Lock()
	p.put = 0
	p.news.Store(len(p.queued) > 0)
	p.mu.Unlock()
}

// frameBytes is the length of the control frame at the front of b.
func frameBytes(b []byte) int { return headerSize + int(binary.LittleEndian.Uint32(b[8:])) }

// parts ends a peer that has said goodbye, once all that it sent has arrived: its rails may bring the last slices behind the goodbye.
// The rx baton is held.
func (p *peer) parts() {
	arrived := uint64(0)
	p.in.each(func(f *inFlow) { arrived += f.arrived.Load() })
	if arrived == p.total {
		p.lose(&GoneError{Rank: p.rank, Orderly: true})
	}
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

// each calls do for every flow to the peer.
func (p *peer) each(do func(kind proto.Kind, channel int, f *outFlow)) {
	for kind := range p.ready {
		for channel := range MaxChannels {
			if f := p.out.find(proto.Kind(kind), channel); f != nil {
				do(proto.Kind(kind), channel, f)
			}
		}
	}
}
