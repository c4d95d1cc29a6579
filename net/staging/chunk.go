package staging

import "sync/atomic"

// chunk is a piece of memory that is cut into buffers of one class. Its number names it in the ids of its buffers.
//
//	mapped ──> cut for a class ──> in use ──> idle ──┬──> cut anew, for a class that has none left at the cap
//	              ^                   ^         │    └──> unmapped: nobody wanted it for a while, or the last communicator is gone
//	              └───────────────────┴─────────┘
type chunk struct {
	number uint32
	class  uint8
	mem    []byte
	bufs   []Buf
	use    atomic.Uint64 // buffers taken since ever<<32 | buffers that are out
	seen   uint64        // use, when it was last looked at; guarded by Pool.mu
}

// oneUse is a buffer that goes out.
const oneUse = 1<<32 | 1

// idle reports whether all buffers are in, as far as can be told without taking them.
func (c *chunk) idle() bool { return uint32(c.use.Load()) == 0 }

// grow returns a buffer of a class whose stack was empty: from a new chunk, or, at the cap, from one that another class does not use.
func (p *Pool) grow(class uint8) *Buf {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.pop(class); b != nil {
		return b // another thread grew it, or the stack was taken for a moment
	}
	number, mem := p.newMemory()
	if mem == nil {
		if number, mem = p.steal(class); mem == nil {
			return nil
		}
	}
	return p.cut(number, mem, class)
}

// newMemory makes memory for a chunk, nil at the cap. mu is held.
func (p *Pool) newMemory() (number uint32, mem []byte) {
	if p.bytes+p.opts.Growth > p.opts.Most {
		return 0, nil
	}
	for p.chunks[number].Load() != nil {
		number++
	}
	mem, err := mapAligned(p.opts.Growth)
	if err != nil {
		return 0, nil
	}
	p.bytes += uint64(len(mem))
	p.grown()
	return number, mem
}

// cut makes a chunk of mem and returns one of its buffers; the others go into the stack, the lowest addresses on top: pages that nobody
// needs stay untouched. mu is held.
func (p *Pool) cut(number uint32, mem []byte, class uint8) *Buf {
	size := p.sizes.sizes[class]
	c := &chunk{number: number, class: class, mem: mem, bufs: make([]Buf, uint64(len(mem))/size)}
	all := make([]*Buf, len(c.bufs))
	for k := range c.bufs {
		b := &c.bufs[k]
		b.id, b.chunk, b.pool = number<<indexBits|uint32(k), c, p
		b.mem = mem[uint64(k)*size : uint64(k+1)*size : uint64(k+1)*size]
		all[k] = b
	}
	p.comfort(c)
	p.chunks[number].Store(c)
	p.putAll(class, all[1:])
	return all[0]
}

// steal takes the memory of a chunk that another class does not use. mu is held.
func (p *Pool) steal(class uint8) (number uint32, mem []byte) {
	for k := range p.chunks {
		c := p.chunks[k].Load()
		if c != nil && c.class != class && c.idle() && p.withdraw(c) {
			p.tellCut(c, class)
			return c.number, c.mem
		}
	}
	return 0, nil
}

// withdraw takes all buffers of c out of their stack and reports true, or leaves them: some are out. mu is held.
func (p *Pool) withdraw(c *chunk) bool {
	all := p.takeAll(c.class)
	rest := make([]*Buf, 0, len(all))
	for _, b := range all {
		if b.chunk != c {
			rest = append(rest, b)
		}
	}
	whole := len(all)-len(rest) == len(c.bufs)
	if !whole {
		rest = all
	}
	p.putAll(c.class, rest)
	return whole
}
