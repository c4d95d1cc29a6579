// Package links keeps the connections of this process to the processes of other ranks, which all its communicators share: it makes
// them when they are needed, several where hosts have several interfaces, makes those anew that fail, and lets go of idle ones.
//
// Core calls it. What it needs to know of a communicator are Terms and a User. What goes by the connections is the business of net/tcp;
// how a connection is made and authenticated is core/boot's. It gives up on another process only where that one is shown to have ended,
// or cannot be reached at all.
//
// Threads: all that is exported may be called from any thread.
package links

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/proto/wire"
)

// Pool is this process's connections to the processes of other ranks. There is one.
//
// A process is known by a name and a token, both random and told only to ranks of its communicators, in the exchange that the unique
// id's secret protects. So one that was started again is another one, and nothing is ever written to an address of the one before; and
// who knows both names and tokens has a communicator with each. The process with the higher name dials; the other one knocks where it
// wants a connection.
//
//	keeper ── dials, takes what arrives, looks after rails, lets go of idle ones ──> net/tcp.Link
//
// One goroutine, the keeper, does it all without waiting for anybody. It lives while another process is known.
type Pool struct {
	once sync.Once
	net  *tcp.Net
	svc  *boot.Service
	err  error
	name [16]byte
	own  [16]byte // token

	mu    sync.Mutex
	fars  []*Far        // guarded by mu
	self  [2]*tcp.Link  // the two ends of what ranks of this process send each other; guarded by mu
	inner []User        // that use them; guarded by mu
	runs  bool          // the keeper; guarded by mu
	kick  chan struct{} // something is to be done before the next tick
	cards cards         // the keeper's
}

// User is a communicator, as far as it shows here. Equal ones are the same.
type User interface {
	Label() string // for the log
	Closing() bool // it ends, and needs nobody any more
}

// Terms are what the user has set of connections. Those of the first communicator with another process count.
type Terms struct {
	Cross    bool                // a router may join interfaces of different places
	Sockets  int                 // of each path that this process dials; 0: as many as it takes
	Idle     time.Duration       // after which the sockets are let go of; 0: never
	Patience time.Duration       // with a process that does not answer
	Named    string              // which interfaces are to be used, as the user wrote it; empty: any
	Distant  func() []netip.Addr // of cards here that are nearer to other processes
}

// Tie is two ranks of a communicator that are to have a connection.
type Tie struct {
	User        User
	Here, There int        // the ranks: one of this process, and the other one
	Peer        *wire.Peer // what the other one told
	Remote      bool       // it is on another host
	Terms       *Terms
}

// Purposes of connections between processes.
const (
	purposeKnock = 1 + iota // to be called back
	purposeRail             // and the rail's number
)

// Open makes what the process keeps for ever, at its first communicator. begins is called on the thread of the background before it reads.
func (p *Pool) Open(begins func()) (*boot.Service, error) {
	p.once.Do(func() {
		if p.svc, p.err = boot.Default(); p.err != nil {
			return
		}
		p.name, p.kick = p.svc.NewKey(), make(chan struct{}, 1)
		_, _ = rand.Read(p.own[:]) // never fails: crypto/rand.Read's contract
		p.net = tcp.NewNet()
		p.net.OnBackground(begins)
	})
	return p.svc, p.err
}

// Name and token by which others know this process.
func (p *Pool) Name() (name, token [16]byte) { return p.name, p.own }

// Net is the sockets of all links.
func (p *Pool) Net() *tcp.Net { return p.net }

// Interfaces are those of this host that carry data.
func (p *Pool) Interfaces() []boot.Interface { return p.svc.Interfaces() }

// hurry has the keeper look at once.
func (p *Pool) hurry() {
	select {
	case p.kick <- struct{}{}:
	default: // it will look anyway
	}
}

// Reach returns the link between two ranks and begins to keep it. There is no Far for a rank of this process.
func (p *Pool) Reach(t *Tie) (*tcp.Link, *Far) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := t.Peer
	if to.Process == p.name {
		return p.within(t.User, t.Here < t.There), nil
	}
	at := slices.IndexFunc(p.fars, func(f *Far) bool { return f.name == to.Process && f.token == to.Token && f.link.Lost() == nil })
	if at < 0 {
		at = len(p.fars)
		p.fars = append(p.fars, p.newFar(t))
		if !p.runs {
			p.runs = true
			go p.keep()
		}
	}
	f := p.fars[at]
	f.enter(t.User, t.There)
	return f.link, f
}

func (p *Pool) newFar(t *Tie) *Far {
	to := t.Peer
	f := &Far{pool: p, name: to.Process, token: to.Token, addrs: to.Addrs, rails: to.Rails, remote: t.Remote,
		dials: bytes.Compare(p.name[:], to.Process[:]) > 0, terms: *t.Terms, changed: make(chan struct{})}
	if f.remote {
		f.distant = t.Terms.Distant()
	}
	f.link = p.net.NewLink(f.needs)
	f.link.OnRail(f.railLost)
	pair := [][]byte{p.own[:], to.Token[:]}
	if f.dials {
		slices.Reverse(pair)
	}
	f.secret = sha256.Sum256(bytes.Join(pair, nil))
	f.inbox = p.svc.Expect(doorOf(p.name, f.secret), f.secret[:])
	f.inbox.Tell(p.hurry) // what has come is not to wait for the next tick
	return f
}

// secret is what only this process and another one know.
type secret [sha256.Size]byte

// doorOf is where the process with a name takes connections of the one with which it has a secret in common.
func doorOf(name [16]byte, secret secret) (k boot.Key) {
	sum := sha256.Sum256(append(secret[:], name[:]...))
	copy(k[:], name[:8]) // of its listener
	copy(k[8:], sum[:])
	return k
}

// Leave ends what a communicator that has closed its fabric kept.
func (p *Pool) Leave(u User) {
	p.mu.Lock()
	for _, f := range p.fars {
		f.leave(u)
	}
	p.leaveWithin(u)
	p.mu.Unlock()
	p.hurry()
}

// within returns the end for the lower or the higher rank of a pair in this process. p.mu is held.
func (p *Pool) within(u User, lower bool) *tcp.Link {
	if !slices.Contains(p.inner, u) {
		p.inner = append(p.inner, u)
	}
	if p.self[0] == nil {
		p.self = [2]*tcp.Link{p.net.NewLink(func() {}), p.net.NewLink(func() {})}
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		for k, l := range p.self {
			if err == nil {
				err = l.AddRail(0, fds[k], nil) // in clear: it stays within the process
			}
			if err != nil {
				l.Fail(err)
			}
		}
	}
	if lower {
		return p.self[0]
	}
	return p.self[1]
}

// leaveWithin closes both ends once no communicator uses them. p.mu is held.
func (p *Pool) leaveWithin(u User) {
	p.inner = slices.DeleteFunc(p.inner, func(o User) bool { return o == u })
	if p.self[0] != nil && len(p.inner) == 0 {
		p.self[0].Close()
		p.self[1].Close()
		p.self = [2]*tcp.Link{}
	}
}

// The keeper's pace.
const (
	tendTime   = 100 * time.Millisecond
	attendTime = 10 * time.Millisecond // while connections are being made
	promptTime = time.Millisecond      // at first, as a neighbour answers within less
	promptly   = 20 * time.Millisecond
	idleTime   = time.Second // while nothing needs it
)

func (p *Pool) keep() {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-p.kick:
		case <-tick.C:
		}
		pace, more := p.turn(time.Now())
		if !more {
			return
		}
		tick.Reset(pace)
	}
}

// turn looks after every other process once, and says when to come again. Nobody is left when more is false.
func (p *Pool) turn(now time.Time) (pace time.Duration, more bool) {
	p.net.Tend()
	p.cards = cards{}
	p.mu.Lock()
	fars := slices.Clone(p.fars)
	p.mu.Unlock()
	pace = idleTime
	var over []*Far
	for _, f := range fars {
		soon, done := f.turn(now)
		pace = min(pace, soon)
		if done {
			over = append(over, f)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range over {
		if !f.used() {
			f.end()
			p.fars = slices.DeleteFunc(p.fars, func(o *Far) bool { return o == f })
		}
	}
	p.runs = len(p.fars) > 0
	return pace, p.runs
}
