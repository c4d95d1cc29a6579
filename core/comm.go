package core

import (
	"sync"
	"sync/atomic"

	"hccl.dev/hccl/core/links"
	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/params"
	"hccl.dev/hccl/net/registration"
	"hccl.dev/hccl/net/tcp"
	"hccl.dev/hccl/proto"
	"hccl.dev/hccl/proto/wire"
	"hccl.dev/hccl/shm"
	"hccl.dev/hccl/shm/fast"
)

// Handle is what a program holds of a communicator: the shim's struct, or that of the Go package. Methods may come from any thread.
type Handle interface {
	// Ready fills the handle once the communicator exists. hot is for the C path; nil takes it back, and returns when no thread is
	// inside that path.
	Ready(rank, n int, hot *fast.Hot)
	// Failed keeps the text of an error that no call has returned yet.
	Failed(text string)
}

// Comm is one rank of a communicator. Its operations run on the calling thread, one after the other, under the lock of hot; Abort
// and the queries need no lock.
type Comm struct {
	id       uint64
	name     string
	handle   Handle
	rank, n  int
	device   int
	blocking bool
	awaited  bool // a call waits for the making and returns its error; the handle does not outlive that
	log      log.Logger
	crowded  bool // its ranks on this host outnumber the processors
	settings *params.Values
	patience atomic.Int64 // how long an operation may stand still, ns; 0: for ever. See limit.go
	agreed   agreement
	peers    []wire.Peer // by rank; what a split hands on
	secret   secret      // of its ranks
	splits   uint64      // number of splits so far, the same on all ranks; under the lock
	phases   phases      // of the making; of the thread that makes it

	seg   *shm.Segment // shared with all ranks, or this rank's own mirror of the others over TCP; nil for one rank
	near  *shm.Segment // shared with the ranks of this host where others are elsewhere, for data alone; else nil
	hot   *fast.Hot
	net   *tcp.Fabric  // nil where all ranks share memory
	wide  bool         // its ranks do not all share memory
	fars  []*links.Far // by rank: the processes of the others; nil for those in this one
	ports proto.Ports
	table *proto.Table
	queue device.Queue
	plans map[proto.Key]*planned // under the lock
	msgs  *messages              // under the lock
	turn  turn                   // under the lock
	solo  batch                  // of this communicator alone; under the lock
	among spread                 // under the lock

	failure atomic.Pointer[Error] // the first fault; every later call returns it
	stage   atomic.Int32          // making, made, over or closed
	closing atomic.Bool           // Abort or Destroy wants the waiters out
	shut    chan struct{}         // closed then
	inside  atomic.Int32          // calls that are inside, and the thread that makes the communicator
	gone    []atomic.Uint32       // by rank: goneNo, goneDead; left and aborted stand in the segment
	anyGone atomic.Bool
	told    atomic.Uint64 // number of the last operation whose header audit has told, over TCP
	cancels []func()      // of the watches
	queued  atomic.Bool   // jobs or collectives of requests were queued since the C path was open; only of a blocking one
	fresh   atomic.Bool   // there is something in the inbox of requests
	open    atomic.Int32  // requests that the pump moves
	leaving atomic.Bool   // closing is by Destroy
	moves   uint64        // how often the turn has moved; under the lock

	mu       sync.Mutex
	jobs     []*job                         // guarded by scheduler.mu: what is queued, the first may be running; see schedule.go
	requests requests                       // see request.go
	pending  int                            // guarded by scheduler.mu: jobs whose calls have returned ncclInProgress
	memory   map[uintptr]*registration.Hold // guarded by mu
	nextID   uintptr                        // guarded by mu
}

const (
	goneNo   = 0
	goneDead = 1
)

// registry finds a communicator by the number that its handle carries: a stale handle is an error, not a crash.
var registry struct {
	mu   sync.RWMutex
	byID map[uint64]*Comm // guarded by mu
}

// Find returns the communicator with this number, nil if it is not there (any more).
func Find(id uint64) *Comm {
	registry.mu.RLock()
	c := registry.byID[id]
	registry.mu.RUnlock()
	return c
}

func register(c *Comm) {
	registry.mu.Lock()
	if registry.byID == nil {
		registry.byID = map[uint64]*Comm{}
	}
	registry.byID[c.id] = c
	commsHere.Store(int32(len(registry.byID)))
	registry.mu.Unlock()
}

func unregister(c *Comm) {
	registry.mu.Lock()
	delete(registry.byID, c.id)
	commsHere.Store(int32(len(registry.byID)))
	registry.mu.Unlock()
}

// Failure is the communicator's sticky error, nil while it is sound.
func (c *Comm) Failure() *Error { return c.failure.Load() }

// break_ makes err the communicator's error unless it has one, closes the C path and tells the handle. It returns what stands.
func (c *Comm) break_(err error) *Error {
	e, first := c.fail(asError(err))
	if !first {
		return e
	}
	if c.enter() == nil { // before it is made nobody is on the C path, and later there is none
		c.hot.Open(false)
		c.leave()
	}
	c.log.Warn("communicator %s: %s", c.label(), e.Text)
	return e
}

// fail stores e unless there is a failure already. The handle has the text before anybody can see that there is one.
func (c *Comm) fail(e *Error) (stands *Error, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stands = c.failure.Load(); stands != nil {
		return stands, false
	}
	c.handle.Failed(e.Text)
	c.failure.Store(e)
	return e, true
}

func (c *Comm) label() string {
	switch {
	case c.name != "":
		return c.name
	case c.n == 0: // how many is not known yet
		return "that a split makes"
	}
	return "of " + itoa(c.n) + " ranks"
}

// enter counts a call in, so that nothing is released under it. It is refused where there is nothing yet, or nothing any more.
func (c *Comm) enter() error {
	c.inside.Add(1)
	if c.stage.Load() == made {
		return nil
	}
	c.inside.Add(-1)
	return c.refusal()
}

// Size is the number of ranks.
func (c *Comm) Size() int { return c.n }

func (c *Comm) leave() { c.inside.Add(-1) }
