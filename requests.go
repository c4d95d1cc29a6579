package hccl

import (
	"context"
	"reflect"
	"runtime"
	"sync"

	"hccl.dev/hccl/core"
)

// Request is one operation that goes on while its goroutine does something else:
//
//	var r hccl.Request
//	err := hccl.Recv(ctx, r.On(c), buf, from) // begins; ctx only says whether
//	compute()                                 // beside it
//	err = r.Wait(ctx)                         // the message is there
//
// Until then its slices are the library's, and pinned. Collectives of one communicator are done in the order in which they were begun
// or called; messages wait for their other side alone, so receives may be begun before sends in any order. A Request holds no
// goroutine. The zero Request is ready for one operation, and must not be copied.
type Request struct {
	mu   sync.Mutex
	core *core.Request // guarded by mu until it is set, once
	c    *Comm         // the same
}

// On is where the request's operation on c is asked for.
func (r *Request) On(c *Comm) Caller { return begun{r, c} }

// begun is a communicator's place in a request.
type begun struct {
	r *Request
	c *Comm
}

func (b begun) perform(ctx context.Context, q request) error {
	r, c := b.r, b.c
	if err := c.usable(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.core != nil {
		return argumentf("%v: its request has begun another operation: take a Request for each", q.fn)
	}
	var call core.Call
	if err := q.check(c.rank, c.n, &call); err != nil {
		return err
	}
	pins := new(runtime.Pinner)
	call.Send, call.Recv = q.send.pin(pins), q.recv.pin(pins)
	started, err := c.core.Start(&call)
	if err != nil {
		pins.Unpin()
		return c.outcome(err)
	}
	r.core, r.c = started, c
	return failure(started.Notify(pins.Unpin))
}

// state is what the request is about; of one that has begun nothing, nil.
func (r *Request) state() (*core.Request, *Comm) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.core, r.c
}

// never is closed: a request that has begun nothing is over.
var never = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Done is closed when the operation is over, in order or with an error, which Wait tells. Nothing is aborted by not waiting for it.
func (r *Request) Done() <-chan struct{} {
	if k, _ := r.state(); k != nil {
		return k.Done()
	}
	return never
}

// Wait waits until the operation is over, and returns how it ended, each time that it is called. When ctx ends meanwhile the
// communicator is aborted, as by an operation that waits; one that has ended before stops this call only.
func (r *Request) Wait(ctx context.Context) error {
	k, c := r.state()
	if k == nil {
		return argumentf("Wait: the request has begun no operation")
	}
	select {
	case <-k.Done():
		return c.outcome(k.Err())
	default:
	}
	if ctx.Err() != nil {
		return ended(ctx, nil)
	}
	select {
	case <-k.Done():
	case <-ctx.Done():
		c.giveUp(ctx)
		<-k.Done()
	}
	return c.outcome(k.Err())
}

// Cancel takes a receive back that no message has met: it then ends with ErrUsage. Anything else may have begun on other ranks, and goes
// on. Wait tells.
func (r *Request) Cancel() {
	if k, _ := r.state(); k != nil {
		k.Cancel()
	}
}

// WaitAll is Wait for each, and returns the first error in their order.
func WaitAll(ctx context.Context, list ...*Request) (err error) {
	for _, r := range list {
		if e := r.Wait(ctx); err == nil {
			err = e
		}
	}
	return err
}

// WaitAny waits until one is over, and returns its place in the list and how it ended. When ctx ends before, it aborts nothing.
func WaitAny(ctx context.Context, list ...*Request) (int, error) {
	if len(list) == 0 {
		return -1, argumentf("WaitAny: there is no request to wait for")
	}
	cases := make([]reflect.SelectCase, 0, len(list)+1)
	for _, r := range list {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(r.Done())})
	}
	cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())})
	k, _, _ := reflect.Select(cases)
	if k == len(list) {
		return -1, ended(ctx, nil)
	}
	return k, list[k].Wait(ctx)
}
