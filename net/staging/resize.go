package staging

import "time"

const (
	idleTime  = 10 * time.Second // between two looks at what lies idle
	idleBytes = 8 << 20          // kept without a communicator: the next one comes soon or never
)

// Configure sets the bounds. Only the first settings of a process count, and only before the first buffer is made.
func (p *Pool) Configure(o Options) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ready.Load() && p.opts == (Options{}) {
		p.opts = o
	}
}

// Join counts a user of the pool, a communicator.
func (p *Pool) Join() {
	p.mu.Lock()
	p.users++
	p.mu.Unlock()
}

// Leave ends a user. With the last one goes the memory, but for a little that another communicator would want at once.
func (p *Pool) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users--; p.users == 0 {
		p.shrink(idleBytes, func(c *chunk) bool { return true })
	}
}

// grown says that there is more, and has somebody look whether it is still wanted later. mu is held.
func (p *Pool) grown() {
	p.tellGrown()
	if p.timer == nil && p.bytes > p.opts.Initial {
		p.timer = time.AfterFunc(idleTime, p.look)
	}
}

// look gives back what nobody has taken a buffer of since the last look, down to the initial size.
func (p *Pool) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shrink(p.opts.Initial, func(c *chunk) bool {
		unused := c.use.Load() == c.seen
		c.seen = c.use.Load()
		return unused
	})
	p.timer = nil
	if p.bytes > p.opts.Initial {
		p.timer = time.AfterFunc(idleTime, p.look)
	}
}

// shrink unmaps idle chunks that may go until no more than keep bytes are left. It asks of every chunk. mu is held.
func (p *Pool) shrink(keep uint64, may func(*chunk) bool) {
	before := p.bytes
	for k := range p.chunks {
		c := p.chunks[k].Load()
		if c == nil || !may(c) || p.bytes <= keep || !c.idle() || !p.withdraw(c) {
			continue
		}
		p.chunks[k].Store(nil)
		p.bytes -= uint64(len(c.mem))
		unmapMemory(c.mem)
	}
	if p.bytes < before {
		p.tellShrunk(before)
	}
}
