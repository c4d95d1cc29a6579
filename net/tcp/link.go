package tcp

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hccl.dev/hccl/internal/secure"
)

// Link is a pair of processes: this one, and another. It carries what the peers of all communicators that the two have in common send
// each other, by its rails. A link without rails is at rest: what is sent then waits, and asks for one.
//
// Whoever commits sends, and holds the tx baton: it alone decides which rail takes which slice.
type Link struct {
	net    *Net
	onNeed func()
	onRail func(rail int, err error)

	rails   [MaxRails]atomic.Pointer[conn] // nil: never there. A dead one stays until another takes its place
	laid    atomic.Uint64                  // bits of those that are not nil, and perhaps more
	distant atomic.Uint64                  // bits of those whose card here is nearer to other processes of this host
	orphans atomic.Uint64                  // bits of rails whose unacked slices others are to take
	drops   atomic.Uint64                  // bits of rails that the other process is to be told of as given up
	stuck   atomic.Int64                   // nanoseconds for which nothing has moved on any rail
	upset   atomic.Pointer[time.Time]      // when either end gave a rail up last, as it stood still; nil: never
	moving  time.Time                      // since when any path has moved; guarded by Net.tending
	parting atomic.Uint64                  // bits of rails that are to say goodbye
	fresh   atomic.Pointer[peer]           // a stack of peers with something to send that are not in active yet
	dead    atomic.Pointer[goneReason]     // set once
	over    atomic.Bool                    // Close was called
	strains [MaxPaths]Strain               // guarded by Net.tending
	asked   atomic.Bool                    // there are strays

	tx     baton
	lead   uint8   // the rail that control messages go by; guarded by tx
	active []*peer // those with something to send; guarded by tx
	turn   int     // the place in active of the one served next; guarded by tx
	picks  uint    // slices chosen by large-first; guarded by tx

	mu     sync.Mutex
	peers  map[uint64]*peer   // by the route of what they send; guarded by mu
	sends  map[uint64]*peer   // the same, by the route of what is sent to them; guarded by mu
	strays map[stray]struct{} // to be told of; guarded by mu

	parties  map[uint64][]*party // by their communicators' numbers; guarded by mu
	speakers []*party            // with something to tell; guarded by mu
	speaks   atomic.Bool         // there are some; written under mu

	grave []*conn // dead rails whose place another has taken; guarded by Net.mu
}

// NewLink makes a link. needs is called, from any thread, when something is to be sent and there is no rail; it must not block.
func (n *Net) NewLink(needs func()) *Link {
	l := &Link{net: n, onNeed: needs, lead: MaxRails, peers: map[uint64]*peer{}, sends: map[uint64]*peer{},
		strays: map[stray]struct{}{}, parties: map[uint64][]*party{}}
	n.mu.Lock()
	n.links = append(n.links, l)
	n.mu.Unlock()
	return l
}

// OnRail sets who is told that a rail failed which was not the last one. Set it before the first rail; it must not block.
func (l *Link) OnRail(told func(rail int, err error)) { l.onRail = told }

// AddRail gives the link a connection: a connected stream socket whose other end is authenticated and calls it by the same number,
// below MaxRails. It takes the place of a rail of that number: who connects anew has given the one before up. What goes
// over it is sealed by keys, nil: in clear. The descriptor belongs to the link from here on, also when AddRail fails.
func (l *Link) AddRail(rail, fd int, keys *secure.Session) error {
	keepFD(fd)
	if err := l.add(rail, fd, keys); err != nil {
		closeFD(fd)
		return fmt.Errorf("cannot take a connection over as rail %d: %w", rail, err)
	}
	l.flush()
	l.net.serve(nil)
	return nil
}

func (l *Link) add(rail, fd int, keys *secure.Session) error {
	if rail < 0 || rail >= MaxRails {
		return fmt.Errorf("there are %d", MaxRails)
	}
	old, err := l.swap(rail, fd, keys)
	if err == nil && old != nil && old.state.Load() != railParting { // one that parts is read to its end
		old.fail(&GoneError{Cause: errReplaced})
	}
	return err
}

func (l *Link) swap(rail, fd int, keys *secure.Session) (old *conn, err error) {
	n := l.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.dead.Load() != nil {
		return nil, errClosed
	}
	c, err := newConn(l, uint8(rail), fd, keys)
	if err != nil {
		return nil, err
	}
	n.opts.apply(c.fd)
	shaping.add(c, n.opts.Rate)
	if l.live() != 0 {
		c.share()
	}
	if keys == nil { // what is sealed has been copied
		c.zero = newZeroCopy(fd, n.opts.ZeroCopy)
	}
	old = l.rails[rail].Swap(c) // before its first event
	l.laid.Or(1 << rail)
	if err := n.enrol(c); err != nil {
		l.rails[rail].Store(old)
		shaping.remove(c)
		return nil, err
	}
	if old != nil {
		l.grave = append(l.grave, old)
	}
	return old, nil
}

// attach makes p one of the link's peers.
func (l *Link) attach(p *peer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g := l.dead.Load(); g != nil {
		return about(g.err, p.rank)
	}
	if l.peers[p.here] != nil {
		return errTwice
	}
	l.peers[p.here], l.sends[p.there], p.link = p, p, l
	t := l.party(p.f)
	t.peers = append(t.peers, p)
	return nil
}

// detach ends a party: nothing of its peers is sent or taken any more. The rx baton is held.
func (l *Link) detach(t *party) {
	l.tx.wait()
	for _, p := range t.peers {
		p.listed.Store(true) // for ever: it is not listed again
	}
	l.collect()
	l.active = slices.DeleteFunc(l.active, func(a *peer) bool { return a.f == t.f })
	l.disband(t)
	for k := range l.rails {
		if c := l.rails[k].Load(); c != nil {
			c.recv.disown(t.f)
		}
	}
	for _, c := range l.grave {
		c.recv.disown(t.f)
	}
	for _, p := range t.peers {
		if p.lost() == nil && !(t.said() && l.idle(p)) {
			l.answer(stray{p.here, true})
		}
		p.out.each((*outFlow).drop)
		p.in.each((*inFlow).drop)
	}
	for !l.tx.pass() {
		l.sendSome()
	}
}

// deserted reports whether all ranks at the other end have said goodbye. The rx baton is held.
func (l *Link) deserted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.peers {
		if !p.quits {
			return false
		}
	}
	return len(l.peers) > 0
}

// find is the peer that sends by a route, nil if there is none any more.
func (l *Link) find(route uint64) *peer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peers[route]
}

// all is a copy of the list of peers.
func (l *Link) all() (list []*peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.peers {
		list = append(list, p)
	}
	return list
}

// lose ends the link: its peers are gone, and nothing can be attached any more.
func (l *Link) lose(err error) {
	if !l.dead.CompareAndSwap(nil, &goneReason{err}) {
		return
	}
	l.stuck.Store(0)
	for _, p := range l.all() {
		p.lose(about(err, p.rank))
		p.list() // to be dropped
	}
}

// Fail ends the link because the other process cannot be reached: its ranks are gone for cause.
func (l *Link) Fail(cause error) {
	l.lose(&GoneError{Cause: cause})
	l.flush()
}

// about is err, of which a link knows no rank, as the error of one.
func about(err error, rank int) error {
	switch e := err.(type) {
	case *GoneError:
		return &GoneError{Rank: rank, Orderly: e.Orderly, Cause: e.Cause}
	case *FrameError:
		return &FrameError{Rank: rank, What: e.What}
	case *ForgedError:
		return &ForgedError{Rank: rank, Cause: e.Cause}
	}
	return err
}

// Moved is how many bytes have gone either way so far, by the rails that are there. waits: some are under way, or wait for room.
func (l *Link) Moved() (bytes uint64, waits bool) {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	for k := range l.rails {
		if c := l.rails[k].Load(); c != nil && !c.closed {
			bytes += c.sent.Load() + c.got.Load()
			waits = waits || c.sent.Load() < c.put.Load() || c.unacked() > 0
		}
	}
	return bytes, waits
}

// Lost is why the link has ended, nil while it has not.
func (l *Link) Lost() error {
	if g := l.dead.Load(); g != nil {
		return g.err
	}
	return nil
}

// Used reports whether a communicator has a peer at the other end.
func (l *Link) Used() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.peers) > 0
}

// Part lets go of the sockets of a link that nothing goes by. The other end reads what is under way and lets go too; whoever has
// something to send afterwards asks for a new rail.
//
//	this end    live ── says goodbye ──> parting ── end of file ──> closed
//	the other   live ── hears it, says its own ──> parting ──────> closed
func (l *Link) Part() {
	for k := range l.rails {
		if c := l.rails[k].Load(); c != nil {
			c.part()
		}
	}
	l.flush()
}

// Close ends a link that has no peers, and its sockets. It is safe to call twice.
func (l *Link) Close() {
	if !l.over.CompareAndSwap(false, true) {
		return
	}
	l.dead.CompareAndSwap(nil, &goneReason{errClosed})
	n := l.net
	n.exclusively(func() {
		l.tx.close()
		n.mu.Lock()
		defer n.mu.Unlock()
		for k := range l.rails {
			if c := l.rails[k].Load(); c != nil {
				c.outlast()
				c.free()
			}
		}
		for _, c := range l.grave {
			c.free()
		}
		n.links = slices.DeleteFunc(n.links, func(other *Link) bool { return other == l })
		n.release()
	})
}
