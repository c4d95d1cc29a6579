// Package fast is the hot state of a communicator on one host and the one-shot path for its small operations, in C.
//
// Entering Go costs a small operation little in the median but much in the tail, because Go's scheduler wakes threads of its own at
// each entry. So all-reduce, all-gather, reduce-scatter and all-to-all of up to 8 KiB of send data per rank are C: the shim calls Func
// with the communicator's hot state and the item. A rank posts its own data as mail (stamp, fingerprint and up to 48 bytes in one cache
// line), polls the mail of all others, and combines them in the order of their ranks.
//
// The C never sleeps. If the others have not come after some spins and yields it answers -1 and leaves the operation pending and
// the hot state locked; the shim hands the same item to the core, which finds it by Resume and goes on with Poll, sleeping where
// it must. The core does the same steps itself for grouped calls (Post, Poll): peers cannot tell the difference.
//
// Every operation of lane 0, fast or not, takes its number and posts its header through Begin (or Post), under Lock.
package fast

import (
	"unsafe"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/internal/coll"
	"hccl.dev/hccl/shm"
)

const unwritten = "shm/fast: being written"

// Config is what a hot state is made from.
type Config struct {
	Seg     *shm.Segment   // joined; nil: no other rank on this host
	N, Rank int            // of the communicator
	Kernel  unsafe.Pointer // int (*)(const struct hccl_cmd*, int): host.RunFunc()
}

// Hot is a communicator's hot state: C memory, used by the shim's fast calls and by the core.
type Hot struct{}

// New makes a hot state. Its path is closed to C until Open(true), and stays closed unless all ranks are in the segment.
func New(c Config) (*Hot, error) { panic(unwritten) }

// Free returns the memory. Nobody may be inside Func with it or hold its lock.
func (h *Hot) Free() { panic(unwritten) }

// Ptr is what the shim passes to Func; nil where there is no fast path at all.
func (h *Hot) Ptr() unsafe.Pointer { panic(unwritten) }

// Func is the C function for hccl_core_table.fast.
func Func() unsafe.Pointer { panic(unwritten) }

// Open says whether C may take operations now. It takes none while the core runs one or has some queued.
func (h *Hot) Open(on bool) { panic(unwritten) }

// Lock serialises the calls on a communicator; C takes the same lock by trying once. A pending operation holds it.
func (h *Hot) Lock()         { panic(unwritten) }
func (h *Hot) TryLock() bool { panic(unwritten) }
func (h *Hot) Unlock()       { panic(unwritten) }

// Begin gives the next number of lane 0 to hd (Seq and Lane are set) and posts it on the board. The lock is held.
func (h *Hot) Begin(hd *shm.Header) (seq uint64) { panic(unwritten) }

// Op is a small operation. Count is the call's: of the whole vector for an all-reduce, of one rank's part for the others.
type Op struct {
	Func       coll.Func
	Type       coll.DataType
	Red        coll.RedOp
	Count      uint64
	Scale      uint64 // PreMulSum
	Send, Recv device.Ptr
}

// Fits reports whether an operation goes by mail. All ranks get the same answer, and must all act on it.
func Fits(f coll.Func, t coll.DataType, r coll.RedOp, count uint64, n int) bool { panic(unwritten) }

// Mail reports whether this communicator has mail: all its ranks are in one segment and there is more than one.
func (h *Hot) Mail() bool { panic(unwritten) }

// Post begins op (number, header) and posts its mail. The lock is held, nothing is pending.
func (h *Hot) Post(op *Op) (seq uint64, err error) { panic(unwritten) }

// Resume reports whether C has left the item at this address pending; the caller then holds the lock.
func (h *Hot) Resume(item unsafe.Pointer) bool { panic(unwritten) }

// Pending tells the number of the pending operation.
func (h *Hot) Pending() (seq uint64, ok bool) { panic(unwritten) }

// Result is what Poll answers.
type Result int8

// The results.
const (
	NotYet   Result = iota
	Done            // the result is in Recv, sleeping peers were rung, nothing is pending
	Mismatch        // a rank sent mail of another operation; see Blocker. The operation stays pending
	Failed          // a kernel refused: a defect
)

// Poll looks once at the mail that is missing and completes the pending operation if it is all there.
func (h *Hot) Poll() Result { panic(unwritten) }

// Blocker is the rank whose mail is missing or, after Mismatch, does not match.
func (h *Hot) Blocker() int { panic(unwritten) }

// Drop forgets the pending operation: it failed. The communicator's mail cannot be used afterwards.
func (h *Hot) Drop() { panic(unwritten) }
