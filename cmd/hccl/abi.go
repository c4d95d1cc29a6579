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
	callAllReduce     callID = C.OP_ALL_REDUCE
	callReduce        callID = C.OP_REDUCE
	callBroadcast     callID = C.OP_BROADCAST
	callAllGather     callID = C.OP_ALL_GATHER
	callReduceScatter callID = C.OP_REDUCE_SCATTER
	callAllToAll      callID = C.OP_ALL_TO_ALL
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

func initRank(n int, id [idSize]byte, rank int) (*communicator, error) {
	c := new(communicator)
	var handle C.ncclComm_t
	if r := C.tool_init(&handle, C.int(n), unsafe.Pointer(&id), C.int(rank)); r != 0 {
		return nil, failure("ncclCommInitRank", nil, r)
	}
	c.handle = handle
	return c, nil
}

// call is one operation on buffers outside the Go heap. count is what the operation's function takes.
type call struct {
	id         callID
	send, recv unsafe.Pointer
	count      int
	typ, red   int
	root       int
}

// run repeats the call and returns the seconds that all repetitions took.
func (c *communicator) run(k call, times int) (float64, error) {
	cc := C.struct_tool_call{op: uint32(k.id), send: k.send, recv: k.recv, count: C.size_t(k.count), _type: C.int(k.typ),
		red: C.int(k.red), root: C.int(k.root), comm: c.handle}
	var seconds C.double
	if r := C.tool_run(&cc, C.int(times), &seconds); r != 0 {
		return 0, failure("the operation", c.handle, r)
	}
	return float64(seconds), nil
}

func (c *communicator) destroy() error {
	if r := C.tool_destroy(c.handle); r != 0 {
		return failure("ncclCommDestroy", nil, r)
	}
	return nil
}

func failure(what string, comm C.ncclComm_t, result C.int) error {
	return errors.New(what + " failed: " + C.GoString(C.tool_error(comm, result)))
}
