package shm

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Peer is a process of this host: its arena as mapped here, and its life. All segments that share a process share one Peer.
type Peer struct {
	l       *Local // nil for this process itself
	name    Key
	view    view    // of its arena, for reading
	bells   uintptr // the first part of it, for writing
	process *process

	refs  int           // guarded by l.mu
	ready chan struct{} // closed when the connection was made or has failed
	err   error         // why it failed; read after ready
}

// Connect returns the process called name: it fetches and maps its arena and begins to watch it, or counts one more user of what
// is there already. A process may Connect to itself.
func (l *Local) Connect(name, key Key, deadline time.Time, stop func() bool) (*Peer, error) {
	if name == l.x.name {
		return l.self, nil
	}
	l.mu.Lock()
	p := l.peers[name]
	if p == nil {
		p = &Peer{l: l, name: name, refs: 1, ready: make(chan struct{})}
		l.peers[name] = p
		l.mu.Unlock()
		return p.connect(client{name, key, deadline, stop})
	}
	p.refs++
	l.mu.Unlock()
	return p.join(client{name, key, deadline, stop})
}

// connect is the first user's part.
func (p *Peer) connect(c client) (*Peer, error) {
	p.err = p.open(&c)
	if p.err != nil {
		p.l.mu.Lock()
		delete(p.l.peers, p.name)
		p.l.mu.Unlock()
	} else {
		p.l.x.watch(p.process)
	}
	close(p.ready)
	return p.result()
}

// join waits for the first user, whose deadline may be later than this one's.
func (p *Peer) join(c client) (*Peer, error) {
	if err := c.until(p.ready); err != nil {
		p.leave()
		return nil, err
	}
	return p.result()
}

func (p *Peer) result() (*Peer, error) {
	if p.err != nil {
		return nil, p.err
	}
	return p, nil
}

// open fetches and maps the arena.
func (p *Peer) open(c *client) error {
	fds, proc, err := c.run(true)
	if err != nil {
		return err
	}
	defer unix.Close(fds[0])
	p.process = proc
	if err = p.mapArena(fds[0]); err != nil {
		proc.close()
	}
	return err
}

func (p *Peer) mapArena(fd int) error {
	size, err := checkMemory(fd, p.l.arena.reason != "")
	if err != nil {
		return err
	}
	if size < bellBytes {
		return fmt.Errorf("a peer's arena of %d bytes", size)
	}
	p.view.size = size
	if p.view.base, err = mapMemory(fd, size, unix.PROT_READ); err != nil {
		return fmt.Errorf("mapping a peer's arena of %d MiB: %w", size>>20, err)
	}
	if p.bells, err = mapMemory(fd, bellBytes, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		unmapMemory(p.view.base, size)
		return fmt.Errorf("mapping a peer's bells: %w", err)
	}
	return nil
}

// Release undoes one Connect. After the last the arena is unmapped.
func (p *Peer) Release() {
	if p.l != nil {
		p.leave()
	}
}

// leave counts one user out. The entry of a connection that failed is gone from the table already, or another's by now.
func (p *Peer) leave() {
	p.l.mu.Lock()
	p.refs--
	last := p.refs == 0 && p.l.peers[p.name] == p
	if last {
		delete(p.l.peers, p.name)
	}
	p.l.mu.Unlock()
	if !last {
		return
	}
	p.l.x.forget(p.process)
	unmapMemory(p.view.base, p.view.size)
	unmapMemory(p.bells, bellBytes)
}

// Alive reports whether the process is still there.
func (p *Peer) Alive() bool { return !p.process.dead.Load() }

// Watch calls f on the background goroutine within milliseconds of the process's death, also while a forked child of it lives;
// at once, on this goroutine, if it is dead already. f must not block. The returned function takes the watch back and returns when
// f is not running: what f uses may be taken down then. It must not be called from f, nor with a lock held that f takes.
func (p *Peer) Watch(f func()) (cancel func()) {
	if p.l == nil {
		return func() {}
	}
	return p.l.x.onDeath(p.process, f)
}

// PID is the process's number as seen from here, 0 if it has none here.
func (p *Peer) PID() int { return p.process.pid }
