package core

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/proto/wire"
)

// netPool is this process's connections to the processes of other ranks, which all its communicators share.
//
// A process is known by a name and a token, both random and told only to ranks of its communicators, in the exchange that the unique
// id's secret protects. So one that was started again is another one, and nothing is ever written to an address of the one before; and
// who knows both names and tokens has a communicator with each. The process with the higher name dials; the other one knocks where it
// wants a connection.
//
//	keeper ── dials, takes what arrives, looks after rails, lets go of idle ones ──> net/tcp.Link
//
// One goroutine, the keeper, does it all without waiting for anybody. It lives while another process is known.
type netPool struct {
	once sync.Once
	net  *tcp.Net
	svc  *boot.Service
	err  error
	name [16]byte
	own  [16]byte // token

	mu    sync.Mutex
	fars  []*far        // guarded by mu
	self  [2]*tcp.Link  // the two ends of what ranks of this process send each other; guarded by mu
	inner []*Comm       // that use them; guarded by mu
	runs  bool          // the keeper; guarded by mu
	kick  chan struct{} // something is to be done before the next tick
}

var pool netPool

// Purposes of connections between processes.
const (
	purposeKnock = 1 + iota // to be called back
	purposeRail             // and the rail's number
)

// open makes what the process keeps for ever, at its first communicator.
func (p *netPool) open() (*boot.Service, error) {
	p.once.Do(func() {
		if p.svc, p.err = boot.Default(); p.err != nil {
			return
		}
		p.name, p.own, p.kick = p.svc.NewKey(), newKey(), make(chan struct{}, 1)
		p.net = tcp.NewNet()
		p.net.OnBackground(pin)
	})
	return p.svc, p.err
}

// hurry has the keeper look at once.
func (p *netPool) hurry() {
	select {
	case p.kick <- struct{}{}:
	default: // it will look anyway
	}
}

// reach returns the link from rank c.rank to rank r, and begins to keep it.
func (p *netPool) reach(c *Comm, r int) (*tcp.Link, *far) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := &c.peers[r]
	if to.Process == p.name {
		return p.within(c, c.rank < r), nil
	}
	at := slices.IndexFunc(p.fars, func(f *far) bool { return f.name == to.Process && f.token == to.Token && f.link.Lost() == nil })
	if at < 0 {
		at = len(p.fars)
		p.fars = append(p.fars, p.newFar(c, to))
		if !p.runs {
			p.runs = true
			go p.keep()
		}
	}
	f := p.fars[at]
	f.enter(c, r)
	return f.link, f
}

func (p *netPool) newFar(c *Comm, to *wire.Peer) *far {
	f := &far{pool: p, name: to.Process, token: to.Token, addrs: to.Addrs, rails: to.Rails, remote: c.isRemote(to),
		dials: bytes.Compare(p.name[:], to.Process[:]) > 0, cross: c.settings.CrossNIC != 0, sockets: socketsOf(c.settings),
		idle: c.settings.NetIdle, patience: c.settings.PeerTimeout,
		changed: make(chan struct{})}
	if f.remote {
		f.distant = c.distantCards()
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

// doorOf is where the process with a name takes connections of the one with which it has a secret in common.
func doorOf(name [16]byte, secret secret) (k boot.Key) {
	sum := sha256.Sum256(append(secret[:], name[:]...))
	copy(k[:], name[:8]) // of its listener
	copy(k[8:], sum[:])
	return k
}

// leave ends what a communicator that has closed its fabric kept.
func (p *netPool) leave(c *Comm) {
	p.mu.Lock()
	for _, f := range p.fars {
		f.leave(c)
	}
	p.leaveWithin(c)
	p.mu.Unlock()
	p.hurry()
}

// within returns the end for the lower or the higher rank of a pair in this process. p.mu is held.
func (p *netPool) within(c *Comm, lower bool) *tcp.Link {
	if !slices.Contains(p.inner, c) {
		p.inner = append(p.inner, c)
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
func (p *netPool) leaveWithin(c *Comm) {
	p.inner = slices.DeleteFunc(p.inner, func(o *Comm) bool { return o == c })
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

func (p *netPool) keep() {
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
func (p *netPool) turn(now time.Time) (pace time.Duration, more bool) {
	p.net.Tend()
	p.mu.Lock()
	fars := slices.Clone(p.fars)
	p.mu.Unlock()
	pace = idleTime
	var over []*far
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
			p.fars = slices.DeleteFunc(p.fars, func(o *far) bool { return o == f })
		}
	}
	p.runs = len(p.fars) > 0
	return pace, p.runs
}
