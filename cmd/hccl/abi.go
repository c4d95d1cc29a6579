package main

// #cgo CFLAGS: -I${SRCDIR}/../../include -O2 -Wall -Wextra
// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "abi.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"
)

// callID is enum tool_op.
type callID int

const (
	callAllReduce      callID = C.OP_ALL_REDUCE
	callReduce         callID = C.OP_REDUCE
	callBroadcast      callID = C.OP_BROADCAST
	callAllGather      callID = C.OP_ALL_GATHER
	callReduceScatter  callID = C.OP_REDUCE_SCATTER
	callAllToAll       callID = C.OP_ALL_TO_ALL
	callGather         callID = C.OP_GATHER
	callScatter        callID = C.OP_SCATTER
	callSendRecv       callID = C.OP_SEND_RECV
	callAllGatherV     callID = C.OP_ALL_GATHER_V
	callReduceScatterV callID = C.OP_REDUCE_SCATTER_V
	callAllToAllV      callID = C.OP_ALL_TO_ALL_V
	callSend           callID = C.OP_SEND
	callRecv           callID = C.OP_RECV
)

const idSize = C.NCCL_UNIQUE_ID_BYTES

// besideTool is the library that was installed with this tool: bin/hccl and lib/libnccl.so.2.
func besideTool() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(exe), "..", "lib", "libnccl.so.2"), nil
}

// openLibrary loads path, or the library beside the tool where path is empty, and returns the path taken.
func openLibrary(path string) (string, error) {
	if path == "" {
		var err error
		if path, err = besideTool(); err != nil {
			return "", err
		}
	}
	cpath := C.CString(path)
	defer C.free(unsafe.Pointer(cpath))
	var text [512]C.char
	if C.tool_open(cpath, &text[0], C.size_t(len(text))) != 0 {
		return "", fmt.Errorf("cannot load the library: %s; build it with make, or name one with --lib", C.GoString(&text[0]))
	}
	return path, nil
}

// lacks says that the loaded library, an older one perhaps, has no such operation.
func lacks(op *operation) error {
	if name := C.tool_missing(uint32(op.call)); name != nil {
		return fmt.Errorf("%s: the library has no function %s; name another one with --lib", op.name, C.GoString(name))
	}
	return nil
}

// libraryVersion is what ncclGetVersion says, as major.minor.patch.
func libraryVersion() (string, error) {
	var v C.int
	if r := C.tool_version(&v); r != 0 {
		return "", failure("ncclGetVersion", nil, r)
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100), nil
}

func newUniqueID() (id [idSize]byte, err error) {
	if r := C.tool_unique_id(unsafe.Pointer(&id)); r != 0 {
		err = failure("ncclGetUniqueId", nil, r)
	}
	return id, err
}

// communicator is one rank's ncclComm_t.
type communicator struct{ handle C.ncclComm_t }

// initRanks makes the communicators of one thread: ranks first, first+1, ... of n.
func initRanks(held, n int, id [idSize]byte, first int) ([]communicator, error) {
	handles := make([]C.ncclComm_t, held)
	if r := C.tool_init(&handles[0], C.int(held), C.int(n), unsafe.Pointer(&id), C.int(first)); r != 0 {
		return nil, failure("ncclCommInitRank", nil, r)
	}
	comms := make([]communicator, held)
	for k, h := range handles {
		comms[k].handle = h
	}
	return comms, nil
}

// call is one rank's part in an operation on buffers outside the Go heap. count is what the operation's function takes; counts and
// fromCounts, outside the Go heap as well, are for the V forms.
type call struct {
	id                 callID
	send, recv         unsafe.Pointer
	count              int
	counts, fromCounts unsafe.Pointer
	typ, red           int
	root, to, from     int
	comm               communicator
}

// program is what one thread repeats: a call for each rank that it holds.
type program struct {
	calls []C.struct_tool_call
	fold  int
}

func newProgram(calls []call, fold int) program {
	p := program{fold: fold}
	for _, k := range calls {
		p.calls = append(p.calls, C.struct_tool_call{op: uint32(k.id), send: k.send, recv: k.recv, count: C.size_t(k.count),
			counts: (*C.uint64_t)(k.counts), from_counts: (*C.uint64_t)(k.fromCounts), _type: C.int(k.typ), red: C.int(k.red),
			root: C.int(k.root), peer_to: C.int(k.to), peer_from: C.int(k.from), comm: k.comm.handle})
	}
	return p
}

// run repeats the program and returns the seconds that all repetitions took, and those of each in samples where it is not empty.
func (p program) run(times int, samples []float64) (float64, error) {
	var seconds C.double
	var failed C.int
	var each *C.double
	if len(samples) > 0 {
		each = (*C.double)(&samples[:times][0])
	}
	if r := C.tool_run(&p.calls[0], C.int(len(p.calls)), C.int(p.fold), C.int(times), &seconds, each, &failed); r != 0 {
		return 0, failure("the operation", p.calls[failed].comm, r)
	}
	return float64(seconds), nil
}

func (c communicator) destroy() error {
	if r := C.tool_destroy(c.handle); r != 0 {
		return failure("ncclCommDestroy", nil, r)
	}
	return nil
}

// libraryMemory is memory of ncclMemAlloc; it lives as long as the process.
func libraryMemory(bytes int) ([]byte, error) {
	var p unsafe.Pointer
	if r := C.tool_alloc(&p, C.size_t(max(bytes, 1))); r != 0 {
		return nil, failure(fmt.Sprintf("ncclMemAlloc of %d bytes", bytes), nil, r)
	}
	return unsafe.Slice((*byte)(p), max(bytes, 1)), nil
}

func failure(what string, comm C.ncclComm_t, result C.int) error {
	return errors.New(what + " failed: " + C.GoString(C.tool_error(comm, result)))
}
