// Package staging is the memory in which slices wait between a program's buffers and a network: one pool for all communicators of the
// process, in size classes, outside the Go heap, page-aligned, and, where the system allows, locked and on huge pages.
//
//	classes   4 KiB, 8 KiB ... 4 MiB, each with a stack of free buffers (stack.go)
//	chunks    what memory comes and goes by: each is cut into buffers of one class, and cut anew when another class wants it (chunk.go)
//	size      nothing at first; grows chunk by chunk to the cap, shrinks again to the initial size when chunks lie idle (resize.go)
//
// Get and Put are lock-free and allocate nothing while a free buffer of the class is there; the buffer used last, which is still in
// cache, is used next. Making a chunk, cutting one anew and giving one back hold a mutex.
//
// At the cap nothing fails. Who can wait is told "not now"; who cannot gets memory of its own, which goes back to the system when it is
// put: the plain path. How often that was is in Stats.
//
// What it is not: it knows no socket and no device. Memory that a network card must know of is to be registered by whoever drives the
// card, once for each chunk. net/tcp is its user; core sets its bounds before the first communicator.
package staging

import (
	"sync"
	"sync/atomic"
	"time"

	"hccl.dev/hccl/device"
)

// Pool is the buffers and their bounds. The zero Pool has the default bounds.
type Pool struct {
	free [mostClasses]stack // by class

	mu      sync.Mutex // guards what follows, growing, cutting and shrinking
	opts    Options
	sizes   classes // set before the first buffer is made, and then constant
	chunks  []atomic.Pointer[chunk]
	bytes   uint64 // in chunks
	told    uint64 // size that was last said at INFO
	node    int    // NUMA node that new chunks are put on, if wanted is 1
	wanted  int    // different nodes that were wanted: none, one, or several, which come to none
	users   int
	refused [len(comforts)]string // comforts that the system refused and is not asked for again: why
	timer   *time.Timer           // looks for idle chunks; nil while there is nothing beyond the initial size

	ready  atomic.Bool // sizes and chunks are set
	plains atomic.Uint64
	beyond atomic.Int64 // bytes of plain buffers that are in use
}

// Shared is the pool of the process.
var Shared Pool

// Buf is a buffer. Its owners are counted: a slice for several readers is sent once to each from the same memory.
type Buf struct {
	owners   atomic.Int32
	next     atomic.Uint32 // id+1 of the free buffer below this one, 0: none
	forsaken atomic.Bool   // see Forsake
	id       uint32        // chunk<<indexBits | index
	chunk    *chunk        // nil: a plain buffer
	pool     *Pool
	mem      []byte
}

// Bytes is the memory, as long as the buffer's class.
func (b *Buf) Bytes() []byte { return b.mem }

// Addr is where Bytes begins, for a device.
func (b *Buf) Addr() device.Ptr { return address(b.mem) }

// Share gives the buffer n owners more. The caller is one.
func (b *Buf) Share(n int) { b.owners.Add(int32(n)) }

// Forsake says that the kernel may read the memory after its last owner has put it, and nobody will be told when it no longer does:
// the socket is gone. The memory then gets other pages, and the kernel keeps those that it has.
func (b *Buf) Forsake() { b.forsaken.Store(true) }

// Put ends one owner's use.
func (b *Buf) Put() {
	if b.owners.Add(-1) != 0 {
		return
	}
	if b.chunk == nil {
		b.pool.unplain(b)
		return
	}
	if b.forsaken.Load() {
		if renew(b.mem) != nil {
			return // it is lost, which is better than to be overwritten on its way
		}
		b.forsaken.Store(false)
	}
	b.chunk.use.Add(^uint64(0))
	b.pool.free[b.chunk.class].push(b, b)
}

// Get returns a buffer of n bytes or more with one owner, or nil: not now. force is for who cannot wait, because nothing that it holds
// could come free; it gets nil only where the system has no memory.
func (p *Pool) Get(n uint64, force bool) *Buf {
	if !p.ready.Load() {
		p.start()
	}
	var b *Buf
	if n <= p.sizes.largest() {
		class := p.sizes.of(n)
		if b = p.pop(class); b == nil {
			b = p.grow(class)
		}
	}
	switch {
	case b != nil:
		b.chunk.use.Add(oneUse)
	case force || n > p.sizes.largest():
		b = p.plain(n)
	}
	if b != nil {
		b.owners.Store(1)
	}
	return b
}

// start fixes the sizes.
func (p *Pool) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready.Load() {
		return
	}
	p.opts = p.opts.filled()
	p.sizes = newClasses(p.opts.Step)
	p.chunks = make([]atomic.Pointer[chunk], p.opts.Most/p.opts.Growth)
	p.ready.Store(true)
}

// at is the buffer of a number, nil where a chunk is gone or was cut into fewer: only who has read an old number asks for that.
func (p *Pool) at(id uint32) *Buf {
	c := p.chunks[id>>indexBits].Load()
	if k := id & (1<<indexBits - 1); c != nil && int(k) < len(c.bufs) {
		return &c.bufs[k]
	}
	return nil
}

// plain makes a buffer that no chunk holds.
func (p *Pool) plain(n uint64) *Buf {
	mem, err := mapMemory(max(n, 1))
	if err != nil {
		return nil
	}
	p.beyond.Add(int64(len(mem)))
	p.tellPlain(p.plains.Add(1))
	return &Buf{pool: p, mem: mem}
}

func (p *Pool) unplain(b *Buf) {
	p.beyond.Add(-int64(len(b.mem)))
	unmapMemory(b.mem)
	b.mem = nil
}
