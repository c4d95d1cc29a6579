package hccl

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"hccl.dev/hccl/core"
	"hccl.dev/hccl/core/boot/root"
)

// numbers counts the communicators of this process: the core knows each by its number.
var numbers atomic.Uint64

// Option is something that Init may be told besides.
type Option func(*core.InitSpec)

var counted sync.Once // the core knows whom to ask for strangers

// Name is what log lines and errors call the communicator.
func Name(name string) Option { return func(s *core.InitSpec) { s.Name = name } }

// Init makes rank's part of a communicator of n ranks, and waits until all have come. It gives up when ctx ends, and at the latest
// after HCCL_INIT_TIMEOUT (300 s); the error names the ranks that are missing.
func Init(ctx context.Context, id ID, rank, n int, opts ...Option) (*Comm, error) {
	if n < 1 || rank < 0 || rank >= n {
		return nil, argumentf("Init: rank %d does not exist among %d ranks: they are numbered from 0", rank, n)
	}
	comms, err := begin(ctx, id, n, []int{rank}, opts).make()
	if err != nil {
		return nil, err
	}
	return comms[0], nil
}

// InitAll makes all n ranks of a communicator in this process, for programs whose ranks are goroutines.
func InitAll(ctx context.Context, n int, opts ...Option) ([]*Comm, error) {
	if n < 1 {
		return nil, argumentf("InitAll of %d ranks: at least 1 is needed", n)
	}
	id, err := NewID()
	if err != nil {
		return nil, err
	}
	ranks := make([]int, n)
	for r := range ranks {
		ranks[r] = r
	}
	return begin(ctx, id, n, ranks, opts).make()
}

// beginning is ranks of this process that are being made.
type beginning struct {
	ctx   context.Context
	id    ID
	comms []*Comm
	items []core.Item
	stops []func() bool // of the watches on ctx; by rank as far as ranks have begun
}

func begin(ctx context.Context, id ID, n int, ranks []int, opts []Option) *beginning {
	core.CalledByGo(runtime.GOMAXPROCS(0))
	b := &beginning{ctx: ctx, id: id}
	for _, rank := range ranks {
		c := &Comm{rank: rank, n: n}
		s := &core.InitSpec{ID: numbers.Add(1), Handle: core.Bare{}, N: n, Rank: rank, IDs: [][]byte{id[:]}, Blocking: true}
		s.Began = func(k *core.Comm) {
			c.core = k
			if ctx.Done() != nil {
				b.stops = append(b.stops, context.AfterFunc(ctx, func() { c.giveUp(ctx) }))
			}
		}
		for _, opt := range opts {
			opt(s)
		}
		b.comms, b.items = append(b.comms, c), append(b.items, core.Item{Init: s})
	}
	return b
}

// make makes all ranks or none.
func (b *beginning) make() ([]*Comm, error) {
	if b.ctx.Err() != nil {
		return nil, ended(b.ctx, nil)
	}
	for _, c := range b.comms {
		if c.n == 1 { // meets nobody
			continue
		}
		counted.Do(func() { core.MakerStrangers = root.Strangers })
		if err := root.Join((*[root.IDSize]byte)(&b.id), c.rank); err != nil {
			return nil, failure(err)
		}
	}
	err := core.Enqueue(b.items)
	if over := b.unwatch(); over && err == nil {
		err = errLate
	}
	if err == nil {
		return b.comms, nil
	}
	for k, c := range b.comms {
		if b.items[k].Err == nil && c.core != nil {
			_ = c.Abort() // fails only where it is over already
		}
	}
	if b.ctx.Err() != nil {
		return nil, ended(b.ctx, err)
	}
	return nil, failure(err)
}

var errLate = errors.New("the communicator had just been made, and was aborted")

// unwatch takes the watches on the context back, and reports whether it has ended before.
func (b *beginning) unwatch() (over bool) {
	for k, stop := range b.stops {
		if !stop() {
			b.comms[k].giveUp(b.ctx)
			over = true
		}
	}
	return over
}
