package fast

/*
#cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra -fvisibility=hidden
#cgo nocallback hccl_hot_begin
#cgo noescape hccl_hot_begin
#cgo nocallback hccl_hot_post
#cgo noescape hccl_hot_post
#cgo nocallback hccl_hot_poll
#cgo noescape hccl_hot_poll
#cgo nocallback hccl_two_fits
#cgo noescape hccl_two_fits
#include "hot.h"
typedef int (*hccl_kernel)(const struct hccl_cmd*, int);
*/
import "C"

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/shm"
)

// How long C waits for the others: long enough for ranks in step, short where they need this processor to get on.
const (
	spins        = 3000
	spinsCrowded = 20
	yields       = 300
)

// Config is what a hot state is made from.
type Config struct {
	Seg     *shm.Segment   // joined; nil: no other rank on this host
	N, Rank int            // of the communicator
	Kernel  unsafe.Pointer // int (*)(const struct hccl_cmd*, int): host.RunFunc()

	TwoShot    bool   // vectors that are too long for mail go the two-shot path, where there are two ranks
	StreamFrom uint64 // bytes of a result from which on it goes around the caches
}

// Hot is a communicator's hot state: C memory, used by the shim's fast calls and by the core.
type Hot struct {
	c    *C.struct_hot
	seg  *shm.Segment
	mail bool
}

// New makes a hot state. Its path is closed to C until Open(true), and stays closed unless all ranks are in the segment.
func New(c Config) (*Hot, error) {
	if c.N < 1 || c.Rank < 0 || c.Rank >= c.N {
		return nil, fmt.Errorf("hot state of rank %d of %d", c.Rank, c.N)
	}
	p := C.hccl_hot_new(C.uint32_t(c.N))
	if p == nil {
		return nil, errors.New("no memory for a communicator's hot state")
	}
	h := &Hot{c: p, seg: c.Seg}
	p.rank = C.uint32_t(c.Rank)
	p.kernel = C.hccl_kernel(c.Kernel)
	p.spins, p.yields = spins, yields
	if c.Seg != nil {
		h.attach(c.Seg, c.N)
	}
	if h.mail && c.N == 2 && c.TwoShot {
		h.attachTwo(c.Seg, c.StreamFrom)
	}
	return h, nil
}

func (h *Hot) attach(s *shm.Segment, n int) {
	p := h.c
	address := func(a device.Ptr) *C.char { return (*C.char)(pointer(uintptr(a))) }
	p.board = (*C.char)(unsafe.Add(unsafe.Pointer(address(s.Area(shm.Boards))), s.Self()*C.BOARD_LEN*C.LINE))
	p.blocks, p.heads, p.bodies = address(s.Area(shm.Blocks)), address(s.Area(shm.MailHeads)), address(s.Area(shm.MailBodies))
	p.why = (*C.uint32_t)(unsafe.Add(unsafe.Pointer(p.blocks), s.Self()*C.BLOCK_SIZE))
	h.mail = s.Shared() && s.Size() == n && n > 1 && n <= device.MaxSrc
	if !h.mail {
		return
	}
	bells := unsafe.Slice((**C.char)(unsafe.Add(unsafe.Pointer(p), C.sizeof_struct_hot)), n)
	for i := range bells {
		bells[i] = address(s.Bells(i))
	}
	if n > shm.Processors() {
		p.spins = spinsCrowded
	}
}

// pointer turns an address of mapped memory, which the collector does not know, into a pointer for C.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// Free returns the memory. Nobody may be inside Func with it or hold its lock.
func (h *Hot) Free() {
	if h.c.two.room != nil {
		h.seg.ForgetRoom()
	}
	C.hccl_hot_free(h.c)
	h.c = nil
}

// Ptr is what the shim passes to Func; nil where there is no fast path at all.
func (h *Hot) Ptr() unsafe.Pointer {
	if !h.mail {
		return nil
	}
	return unsafe.Pointer(h.c)
}

// Func is the C function for hccl_core_table.fast.
func Func() unsafe.Pointer { return unsafe.Pointer(C.hccl_fast) }

// Open says whether C may take operations now. Who closes it and must know that C is out takes the lock once.
func (h *Hot) Open(on bool) {
	v := uint32(0)
	if on && h.mail {
		v = 1
	}
	word(&h.c.open).Store(v)
}

// IsOpen reports whether C takes operations now.
func (h *Hot) IsOpen() bool { return word(&h.c.open).Load() != 0 }

func word(p *C.uint32_t) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(p)) }

// Lock serialises the calls on a communicator; C takes the same lock by trying once. A pending operation holds it.
func (h *Hot) Lock() {
	if h.TryLock() {
		return
	}
	for w := word(&h.c.lock); w.Swap(2) != 0; { // who has waited leaves a 2, as others may wait too
		unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWait, 2, 0, 0, 0)
	}
	h.acquired()
}

// Operations of futex(2), the ones that C uses too.
const (
	futexWait = 0
	futexWake = 1
)

// TryLock takes the lock if it is free.
func (h *Hot) TryLock() bool {
	if !word(&h.c.lock).CompareAndSwap(0, 1) {
		return false
	}
	h.acquired()
	return true
}

// Unlock frees the lock and wakes one who waits for it.
func (h *Hot) Unlock() {
	h.releasing()
	w := word(&h.c.lock)
	if w.Swap(0) == 2 {
		unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(w)), futexWake, 1, 0, 0, 0)
	}
}

// Wanted reports whether another thread waits for the lock, which is held.
func (h *Hot) Wanted() bool { return word(&h.c.lock).Load() == 2 }

// Begin gives the next number of lane 0, from 1, to hd (Seq and Lane are set) and posts it on the board. The lock is held.
func (h *Hot) Begin(hd *shm.Header) (seq uint64) {
	hd.Lane = 0
	hd.Seq = uint64(C.hccl_hot_begin(h.c, C.uint64_t(what(hd)), C.uint64_t(hd.Count), C.uint64_t(hd.Extra)))
	return hd.Seq
}

// what packs the small fields of a header as C takes them.
func what(hd *shm.Header) uint64 {
	return uint64(hd.Func) | uint64(hd.Type)<<8 | uint64(hd.Red)<<16 | uint64(hd.Flags)<<24 | uint64(uint32(hd.Root))<<32
}

// Op is a small operation. Count is the call's: of the whole vector for an all-reduce, of one rank's part for the others.
type Op struct {
	Func       coll.Func
	Type       coll.DataType
	Red        coll.RedOp
	Count      uint64
	Scale      uint64 // PreMulSum
	Send, Recv device.Ptr
}

// Fits reports whether an operation goes this path; minChannels is what the call asks for. All ranks get the same answer, and must all
// act on it.
func (h *Hot) Fits(f coll.Func, t coll.DataType, r coll.RedOp, count uint64, minChannels int) bool {
	return h.mail && (fitsMail(f, t, r, count, int(h.c.n)) || minChannels <= 1 &&
		C.hccl_two_fits(h.c, C.uint32_t(f), C.uint32_t(t), C.uint32_t(r), C.uint64_t(count)) != 0)
}

func fitsMail(f coll.Func, t coll.DataType, r coll.RedOp, count uint64, n int) bool {
	return C.hccl_hot_fits(C.uint32_t(f), C.uint32_t(t), C.uint32_t(r), C.uint64_t(count), C.uint32_t(n)) != 0
}

var (
	errKernel  = errors.New("a kernel refused a small operation: defect")
	errPending = errors.New("a small operation was begun while another was pending: defect")
)

// Post begins op (number, header) and posts its mail. The lock is held, nothing is pending, and the operation Fits.
func (h *Hot) Post(op *Op) (seq uint64, err error) {
	if h.c.pending.active != 0 || !h.mail {
		return 0, errPending
	}
	if h.c.two.room == nil && h.c.two.most != 0 && !fitsMail(op.Func, op.Type, op.Red, op.Count, int(h.c.n)) {
		if err := h.takeRoom(); err != nil {
			return 0, err
		}
	}
	bad := C.hccl_hot_post(h.c, C.uint32_t(op.Func), C.uint32_t(op.Type), C.uint32_t(op.Red), C.uint64_t(op.Count),
		C.uint64_t(op.Scale), C.uintptr_t(op.Send), C.uintptr_t(op.Recv))
	if bad != 0 {
		return 0, errKernel
	}
	return uint64(h.c.seq), nil
}

// Claim takes over what C has left pending for the item at this address: the caller then holds the lock.
func (h *Hot) Claim(item uintptr) bool {
	return item != 0 && atomic.CompareAndSwapUintptr(h.item(), item, 0)
}

// ClaimAny takes over what C has left pending and nobody has claimed, for who ends the communicator: nobody will.
func (h *Hot) ClaimAny() bool { return atomic.SwapUintptr(h.item(), 0) != 0 }

func (h *Hot) item() *uintptr { return (*uintptr)(unsafe.Pointer(&h.c.pending.item)) }

// Pending tells the number of the pending operation. The lock is held.
func (h *Hot) Pending() (seq uint64, ok bool) {
	return uint64(h.c.pending.seq), h.c.pending.active != 0
}

// Result is what Poll answers.
type Result int8

// The results.
const (
	NotYet   Result = C.POLL_NOT_YET
	Done     Result = C.POLL_DONE     // the result is in Recv, sleeping peers were rung, nothing is pending
	Mismatch Result = C.POLL_MISMATCH // a rank sent mail of another operation; see Blocker. The operation stays pending
	Failed   Result = C.POLL_FAILED   // a kernel refused, or a rank names memory that it does not have: a defect
	Moved    Result = C.POLL_MOVED    // further than before, but not done
)

// Poll looks once at the mail that is missing and completes the pending operation if it is all there. The lock is held.
func (h *Hot) Poll() Result { return Result(C.hccl_hot_poll(h.c)) }

// Blocker is the rank whose mail is missing or, after Mismatch, does not match.
func (h *Hot) Blocker() int { return int(h.c.pending.next) }

// Drop forgets the pending operation: it failed. The communicator's mail cannot be used afterwards: its generations have no meaning
// any more.
func (h *Hot) Drop() {
	h.Open(false)
	h.mail = false
	h.c.pending.active = 0
	atomic.StoreUintptr(h.item(), 0)
}

// cHash is shm's Header.Hash as C computes it: the two are one definition in two languages, which a test compares.
func cHash(hd *shm.Header) uint64 {
	return uint64(C.hccl_hot_hash(C.uint64_t(what(hd)), C.uint64_t(hd.Count), C.uint64_t(hd.Extra)))
}
