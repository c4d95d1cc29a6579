package tcp

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
)

// The staging of the process: buffers of 1 KiB to MaxSlice in powers of two, shared by all fabrics, outside the Go heap because
// kernels of a device read and write them. Free buffers of a class stand in a stack, so that the one used last, which is still in
// cache, is used next. Memory comes in chunks that are never unmapped; trim gives the pages of idle chunks back to the system.
const (
	minClass   = 10 // 1 KiB
	maxClass   = 18 // MaxSlice
	numClasses = maxClass - minClass + 1
	maxChunk   = 2 << 20 // bytes in a chunk; those of small classes are smaller, of 1<<indexBits buffers
	indexBits  = 6
	softBytes  = 512 << 20 // beyond it only those get memory that could not go on without
	hardBytes  = 2 << 30   // the end
	idleBytes  = 8 << 20   // pages that trim leaves alone
	maxChunks  = 4096
)

// buf is one staging buffer. Its owners are counted: a slice for several readers is sent once to each from the same memory.
type buf struct {
	refs  atomic.Int32
	next  atomic.Uint32 // id+1 of the free buffer below this one, 0: none
	id    uint32        // chunk<<indexBits | index
	class uint8
	addr  device.Ptr
	mem   []byte // the same memory as addr, of the size of its class
}

type pool struct {
	free   [numClasses]stack
	chunks [maxChunks]atomic.Pointer[chunk]
	mu     sync.Mutex // guards growing and trimming
	used   int        // chunks made; guarded by mu
	bytes  int        // in them; guarded by mu
}

type chunk struct {
	mem   []byte
	bufs  []buf
	count int // free buffers met while trimming; guarded by pool.mu
}

// stack is a lock-free stack of free buffers. The upper half of head counts changes: a buffer that was taken and put back between
// a load and a compare-and-swap does not look like one that stayed.
type stack struct {
	head atomic.Uint64 // changes<<32 | id+1
	_    [56]byte      // classes do not share a cache line
}

// staging is made on demand: a process without TCP has none.
var staging pool

// classOf is the smallest class for n bytes, n at most MaxSlice.
func classOf(n uint64) uint8 {
	if n <= 1<<minClass {
		return 0
	}
	return uint8(bits.Len64(n-1) - minClass)
}

// get returns a buffer with one owner, or nil: not now. force is for who holds no other buffer that could come free.
func (p *pool) get(n uint64, force bool) *buf {
	class := classOf(n)
	b := p.pop(class)
	if b == nil {
		b = p.grow(class, force)
	}
	if b != nil {
		b.refs.Store(1)
	}
	return b
}

// put ends one owner's use.
func (p *pool) put(b *buf) {
	if b.refs.Add(-1) == 0 {
		p.push(b)
	}
}

func (p *pool) at(id uint32) *buf { return &p.chunks[id>>indexBits].Load().bufs[id&(1<<indexBits-1)] }

func (p *pool) pop(class uint8) *buf {
	s := &p.free[class]
	for {
		h := s.head.Load()
		if uint32(h) == 0 {
			return nil
		}
		b := p.at(uint32(h) - 1)
		if s.head.CompareAndSwap(h, (h>>32+1)<<32|uint64(b.next.Load())) {
			return b
		}
	}
}

func (p *pool) push(b *buf) {
	s := &p.free[b.class]
	for {
		h := s.head.Load()
		b.next.Store(uint32(h))
		if s.head.CompareAndSwap(h, (h>>32+1)<<32|uint64(b.id+1)) {
			return
		}
	}
}

// grow maps a chunk for class and returns one of its buffers.
func (p *pool) grow(class uint8, force bool) *buf {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.pop(class); b != nil {
		return b // another thread grew it, or trim was under way
	}
	if p.used == maxChunks || p.bytes >= hardBytes || p.bytes >= softBytes && !force {
		return nil
	}
	c, err := newChunk(uint32(p.used), class)
	if err != nil {
		return nil
	}
	p.chunks[p.used].Store(c)
	p.used++
	p.bytes += len(c.mem)
	for i := len(c.bufs) - 1; i > 0; i-- { // the lowest addresses on top: untouched pages stay untouched
		p.push(&c.bufs[i])
	}
	return &c.bufs[0]
}

func newChunk(number uint32, class uint8) (*chunk, error) {
	size := 1 << (class + minClass)
	mem, err := unix.Mmap(-1, 0, min(size<<indexBits, maxChunk), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	c := &chunk{mem: mem, bufs: make([]buf, len(mem)/size)}
	for i := range c.bufs {
		b := &c.bufs[i]
		b.id, b.class = number<<indexBits|uint32(i), class
		b.mem = mem[i*size : (i+1)*size : (i+1)*size]
		b.addr = address(b.mem)
	}
	return c, nil
}

// trim returns the pages of chunks that are wholly free to the system, beyond a few that the next communicator will want.
func (p *pool) trim() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes <= idleBytes {
		return
	}
	keep := idleBytes
	for class := range p.free {
		p.trimClass(&p.free[class], &keep)
	}
}

// trimClass takes the whole stack, so that no free buffer can be used meanwhile, and puts it back. Who finds the stack empty
// comes to grow, waits for mu and looks again.
func (p *pool) trimClass(s *stack, keep *int) {
	h := s.head.Load()
	for !s.head.CompareAndSwap(h, (h>>32+1)<<32) {
		h = s.head.Load()
	}
	first := uint32(h)
	for id := first; id != 0; id = p.at(id - 1).next.Load() {
		p.chunks[(id-1)>>indexBits].Load().count++
	}
	for id := first; id != 0; {
		b := p.at(id - 1)
		id = b.next.Load()
		c := p.chunks[b.id>>indexBits].Load()
		if c.count == len(c.bufs) {
			p.idle(c, keep)
		}
		c.count = 0
		p.push(b)
	}
}

// idle gives c's pages back unless it is one of those to keep. Failure costs memory only.
func (p *pool) idle(c *chunk, keep *int) {
	if *keep > 0 {
		*keep -= len(c.mem)
		return
	}
	for unix.Madvise(c.mem, unix.MADV_DONTNEED) == unix.EINTR {
	}
}
