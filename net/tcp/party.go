package tcp

import (
	"encoding/binary"
	"slices"
)

// party is a rank's part in a link: its peers at the other end, and what it tells all of them at once. Hundreds of ranks in two processes
// that each told each other one that they leave would be tens of thousands of frames; so the frame goes once, and its reader shares it
// out.
//
//	rank 0 ── party ──┐                       ┌─> rank 2, of rank 0
//	rank 1 ── party ──┴── link ───── link ────┴─> rank 3, of rank 0
//
// Nobody answers: there are few such messages, which are kept until the party ends.
type party struct {
	outbox
	f      *Fabric
	link   *Link
	peers  []*peer // guarded by link.mu
	listed bool    // in link.speakers; guarded by link.mu
}

// party is that of f in the link, which is made if there is none. l.mu is held.
func (l *Link) party(f *Fabric) *party {
	for _, t := range f.parties {
		if t.link == l {
			return t
		}
	}
	t := &party{f: f, link: l}
	f.parties = append(f.parties, t)
	l.parties[f.id] = append(l.parties[f.id], t)
	return t
}

// says queues a message for all peers.
func (t *party) says(h header, b []byte) {
	h.route, h.tag.Lane = t.f.id, uint32(t.f.me)
	_ = t.queue(h, b) // what is told so is far below the bound
	t.link.mu.Lock()
	t.list()
	t.link.mu.Unlock()
}

// list has the link take what is queued. Its mu is held.
func (t *party) list() {
	if l := t.link; !t.listed && t.news.Load() {
		t.listed = true
		l.speakers = append(l.speakers, t)
		l.speaks.Store(true)
	}
}

// leave queues the goodbye: nothing follows, and the slices committed so far are all there will be.
func (t *party) leave() {
	var runs []byte
	first, count, total := -1, 0, uint64(0)
	end := func() {
		if count > 0 {
			runs = binary.LittleEndian.AppendUint32(runs, uint32(first))
			runs = binary.LittleEndian.AppendUint32(runs, uint32(count))
			runs = binary.LittleEndian.AppendUint64(runs, total)
		}
	}
	for _, p := range t.peers {
		n := uint64(0)
		p.out.each(func(f *outFlow) { n += f.committed.Load() })
		if count > 0 && p.rank == first+count && n == total {
			count++
			continue
		}
		end()
		first, count, total = p.rank, 1, n
	}
	end()
	for part := range slices.Chunk(runs, MaxControl/runBytes*runBytes) {
		t.says(header{typ: frameLeave, length: uint32(len(part))}, part)
	}
}

// takeSaid appends what parties have to tell to b, until it has about a batch.
func (l *Link) takeSaid(b []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.speakers = slices.DeleteFunc(l.speakers, func(t *party) bool {
		if len(b) < batchBytes {
			b = t.takeQueued(b, batchBytes)
		}
		t.listed = t.news.Load()
		return !t.listed
	})
	l.speaks.Store(len(l.speakers) > 0)
	return b
}

// speaksToSomebody reports whether what parties have to tell is for ranks that are there.
func (l *Link) speaksToSomebody() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.speakers, func(t *party) bool {
		return slices.ContainsFunc(t.peers, func(p *peer) bool { return p.lost() == nil })
	})
}

// recallSaid has the next lead send all that parties have told.
func (l *Link) recallSaid() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range l.parties {
		for _, t := range list {
			t.recall()
			t.list()
		}
	}
}

// disband takes a party out of the link.
func (l *Link) disband(t *party) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range t.peers {
		delete(l.peers, p.here)
		delete(l.sends, p.there)
	}
	same := func(o *party) bool { return o == t }
	if l.parties[t.f.id] = slices.DeleteFunc(l.parties[t.f.id], same); len(l.parties[t.f.id]) == 0 {
		delete(l.parties, t.f.id)
	}
	l.speakers = slices.DeleteFunc(l.speakers, same)
	t.listed = true // for ever
	l.speaks.Store(len(l.speakers) > 0)
}

// listeners are the ranks of a communicator to which somebody at the other end has told something.
func (l *Link) listeners(h *header) (to []*peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.parties[h.route] {
		if p := l.peers[route(h.route, int(h.tag.Lane), t.f.me)]; p != nil && h.seq >= p.told {
			to = append(to, p)
		}
	}
	return to
}

// announced shares out what a rank has told all. What was heard already comes again by a new lead.
func (c *conn) announced(h *header) error {
	b := c.recv.stash[c.recv.r:][:h.length]
	c.recv.r += len(b)
	for _, p := range c.link.listeners(h) {
		p.told = h.seq + 1
		if h.typ == frameAnnounce {
			p.hear(b)
			continue
		}
		c.link.net.stir(p.f)
		if total, ok := left(b, p.f.me); ok {
			p.quits, p.total = true, total
			p.parts()
		}
	}
	return nil
}

// hear has core hear a message of the peer, and wakes the rank's thread if core asks for it.
func (p *peer) hear(b []byte) {
	if p.f.onControl != nil && !p.f.closed.Load() && p.f.onControl(p.rank, b) {
		p.f.net.stir(p.f)
	}
}

// runBytes is the size of a run of ranks in a goodbye: the first rank, how many, and how many slices each was sent.
const runBytes = 4 + 4 + 8

// left is what a goodbye says to rank r.
func left(runs []byte, r int) (total uint64, ok bool) {
	for ; len(runs) >= runBytes; runs = runs[runBytes:] {
		first, count := binary.LittleEndian.Uint32(runs), binary.LittleEndian.Uint32(runs[4:])
		if uint64(r) >= uint64(first) && uint64(r) < uint64(first)+uint64(count) {
			return binary.LittleEndian.Uint64(runs[8:]), true
		}
	}
	return 0, false
}
