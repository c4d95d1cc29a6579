package staging

import "sync/atomic"

// stack is a lock-free stack of the free buffers of a class. The upper half of head counts changes, a version: a buffer that was taken
// and put back between a load and a compare-and-swap does not look like one that stayed.
type stack struct {
	head atomic.Uint64 // version<<32 | id+1 of the buffer on top, 0: none
	_    [56]byte      // classes do not share a cache line
}

func (s *stack) swap(old uint64, top uint32) bool {
	return s.head.CompareAndSwap(old, (old>>32+1)<<32|uint64(top))
}

// push puts a chain of buffers on top, first to last, linked by next.
func (s *stack) push(first, last *Buf) {
	for {
		h := s.head.Load()
		last.next.Store(uint32(h))
		if s.swap(h, first.id+1) {
			return
		}
	}
}

// pop takes the buffer on top, nil if there is none. What it reads of a buffer that another thread took meanwhile is not used: the
// version tells.
func (p *Pool) pop(class uint8) *Buf {
	s := &p.free[class]
	for {
		h := s.head.Load()
		if uint32(h) == 0 {
			return nil
		}
		b := p.at(uint32(h) - 1)
		if b != nil && s.swap(h, b.next.Load()) {
			return b
		}
	}
}

// takeAll empties the stack and returns what was in it, from the top. Who finds it empty comes to grow, waits for mu and looks again.
func (p *Pool) takeAll(class uint8) (bufs []*Buf) {
	s := &p.free[class]
	h := s.head.Load()
	for !s.swap(h, 0) {
		h = s.head.Load()
	}
	for id := uint32(h); id != 0; {
		b := p.at(id - 1)
		bufs = append(bufs, b)
		id = b.next.Load()
	}
	return bufs
}

// putAll puts buffers back as takeAll found them.
func (p *Pool) putAll(class uint8, bufs []*Buf) {
	if len(bufs) == 0 {
		return
	}
	for k := range len(bufs) - 1 {
		bufs[k].next.Store(bufs[k+1].id + 1)
	}
	p.free[class].push(bufs[0], bufs[len(bufs)-1])
}
