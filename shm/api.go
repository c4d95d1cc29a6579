package shm

import (
	"time"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/proto"
)

const unwritten = "shm: being written"

// Keeper is told of every descriptor that the package keeps beyond a call, so that a forked child can close it.
type Keeper interface {
	Opened(fd int)
	Closed(fd int)
}

// Descriptors is the Keeper in use; nil: nobody wants to know. It is set before the first call of this package.
var Descriptors Keeper

// ArenaLimit is the cap of this process's arena in bytes. It is read when the arena is made.
var ArenaLimit uint64 = 512 << 20

// Key is the secret under which memory is offered. It travels over the authenticated bootstrap: whoever presents it on the socket
// is a rank of the job, and that it could connect proves that it is on this host and in this network namespace.
type Key [16]byte

// Local is this process among those of its host. There is at most one, made at first use and kept.
type Local struct{}

// Open returns this process's Local, which is made at the first call: a socket, an arena and one background goroutine. An
// error says what this host refuses (memory or socket); the caller takes another transport then.
func Open() (*Local, error) { panic(unwritten) }

// Name is the address of this process's socket, in the form that Connect and Fetch take: 16 random bytes.
func (l *Local) Name() Key { panic(unwritten) }

// Fallback tells why the arena is a file in /dev/shm instead of a memfd; "" if it is a memfd.
func (l *Local) Fallback() string { panic(unwritten) }

// Offer makes fd's memory available to whoever names key, until Withdraw. The descriptor stays the caller's; the arena itself
// is offered with OfferArena.
func (l *Local) Offer(key Key, fd int) { panic(unwritten) }

// OfferArena lets whoever names key Connect to this process, until Withdraw.
func (l *Local) OfferArena(key Key) { panic(unwritten) }

// Withdraw ends an offer.
func (l *Local) Withdraw(key Key) { panic(unwritten) }

// Fetch asks the process called name for what it offers under key, and waits for an offer that is yet to come. It ends with an
// error at the deadline and when stop (may be nil) answers true; ErrElsewhere says that no such process is reachable from here.
func (l *Local) Fetch(name, key Key, deadline time.Time, stop func() bool) (fd int, err error) {
	panic(unwritten)
}

// Connect returns the process called name: it fetches and maps its arena and begins to watch it, or counts one more user of what
// is there already. A process may Connect to itself.
func (l *Local) Connect(name, key Key, deadline time.Time, stop func() bool) (*Peer, error) {
	panic(unwritten)
}

// Peer is a process of this host.
type Peer struct{}

// Release undoes one Connect. After the last the arena is unmapped.
func (p *Peer) Release() { panic(unwritten) }

// Alive reports whether the process is still there.
func (p *Peer) Alive() bool { panic(unwritten) }

// Watch calls f on the background goroutine within milliseconds of the process's death (at once if it is dead already), also
// while a forked child of it lives. f must not block. The returned function takes the watch back; f may be running then.
func (p *Peer) Watch(f func()) (cancel func()) { panic(unwritten) }

// PID is the process's number as seen from here, 0 if it has none here.
func (p *Peer) PID() int { panic(unwritten) }

// Segment is one communicator's memory on one host, as one rank has it mapped. Ranks in it are counted from 0 to Size-1 in
// the order of their ranks in the communicator; methods speak of these indices, Ports of the communicator's ranks.
type Segment struct{}

// Create makes the segment for n ranks with ports on the given number of channels.
func Create(n, channels int) (*Segment, error) { panic(unwritten) }

// Map maps a segment that another rank created, by the descriptor it offered, which is closed. Size and version must be as expected.
func Map(fd, n, channels int) (*Segment, error) { panic(unwritten) }

// FD is the descriptor to offer to the other ranks, of the segment's maker; CloseFD when all have it.
func (s *Segment) FD() int  { panic(unwritten) }
func (s *Segment) CloseFD() { panic(unwritten) }

// Join makes the caller the rank with index self. ranks[i] is the communicator's rank of index i, peers[i] its process; peers are
// released by Close. The state becomes Live.
func (s *Segment) Join(self int, ranks []int, peers []*Peer) error { panic(unwritten) }

func (s *Segment) Size() int             { panic(unwritten) }
func (s *Segment) Self() int             { panic(unwritten) }
func (s *Segment) Peer(i int) *Peer      { panic(unwritten) }
func (s *Segment) Rank(i int) int        { panic(unwritten) } // index to the communicator's rank
func (s *Segment) Index(rank int) int    { panic(unwritten) } // and back; -1: not in the segment
func (s *Segment) SetState(st State)     { panic(unwritten) } // own state; peers that sleep are not rung, Raise does that
func (s *Segment) State(i int) State     { panic(unwritten) }
func (s *Segment) Count(st State) int    { panic(unwritten) } // ranks that are in this state or a later one
func (s *Segment) Why() Why              { panic(unwritten) } // own word, one load
func (s *Segment) Clear(bits Why)        { panic(unwritten) } // own word
func (s *Segment) Raise(i int, bits Why) { panic(unwritten) } // adds bits to i's word and rings it
func (s *Segment) RaiseAll(bits Why)     { panic(unwritten) } // every rank's, own included
func (s *Segment) Ring(i int)            { panic(unwritten) } // wakes the threads of rank i that sleep

// Header returns what rank i posted as number seq of a lane, if it is among its last 64.
func (s *Segment) Header(i int, lane uint32, seq uint64) (Header, bool) { panic(unwritten) }

// Last returns the header that rank i posted last.
func (s *Segment) Last(i int) (Header, bool) { panic(unwritten) }

// SetFault writes the fault record if there is none yet, raises WhyFault for all ranks, and reports whether it was the first.
func (s *Segment) SetFault(f Fault) bool { panic(unwritten) }

// Fault returns the fault record.
func (s *Segment) Fault() (Fault, bool) { panic(unwritten) }

// Ports returns the rank's ports. Rest must be called when an operation has ended.
func (s *Segment) Ports() *Ports { panic(unwritten) }

// Close unmaps the segment once nobody reads this rank's slices any more (at once if all are read); the caller's use of it ends
// here. No thread may be waiting on it. Peers are released.
func (s *Segment) Close() { panic(unwritten) }

// Ports are one rank's ends of ports. One thread at a time uses them.
type Ports struct{}

var _ proto.Ports = (*Ports)(nil)

func (p *Ports) Out(kind proto.Kind, channel, peer int) (proto.Out, error) { panic(unwritten) }
func (p *Ports) In(kind proto.Kind, channel, peer int) (proto.In, error)   { panic(unwritten) }

// Rest says that the operation is over: until the next Begin, staging whose slices are all read may be lent to other ports.
func (p *Ports) Rest() { panic(unwritten) }

// Bell is what one thread sleeps on. A wait goes: TakeBell; Arm for every segment that the thread waits on; look again at all
// that is waited for; Sleep; Disarm for every segment; Drop. Whoever stores before it rings, or rings after the Arm, wakes it.
type Bell struct{}

// TakeBell returns a bell of the pool. It never fails: before Open it is one that only this process can ring.
func TakeBell() *Bell { panic(unwritten) }

// Drop gives the bell back. It must be disarmed.
func (b *Bell) Drop() { panic(unwritten) }

// Arm makes every Ring of this rank of s reach the bell. False: two threads sleep on this rank already (or the bell was taken
// before Open), and the caller must look again at least once a millisecond.
func (b *Bell) Arm(s *Segment) bool { panic(unwritten) }

// Disarm undoes Arm.
func (b *Bell) Disarm(s *Segment) { panic(unwritten) }

// Prepare must precede the first Arm, or the look if there is nothing to Arm: rings from here on end the next Sleep.
func (b *Bell) Prepare() { panic(unwritten) }

// Sleep returns when the bell has rung since Prepare (true), or after d (false).
func (b *Bell) Sleep(d time.Duration) bool { panic(unwritten) }

// Ring wakes the thread from inside this process.
func (b *Bell) Ring() { panic(unwritten) }

// Yield gives the processor to another thread: sched_yield as a raw system call, the scheduler of Go is not told.
func Yield() { panic(unwritten) }

// Processors is the number of processors that this process may run on.
func Processors() int { panic(unwritten) }

// Area is an address inside the segment, for shm/fast.
func (s *Segment) Area(what Area) device.Ptr { panic(unwritten) }

// Area names a part of a segment.
type Area uint8
