// Package root makes unique ids in Go programs, and answers the roll call of the ranks that meet under them.
//
// The maker of ids is C, because a C program that makes an id must not start Go (capi/shim/meet.h has the picture). This package
// is that same C, file by file, compiled into a Go program, which has no shim; nothing of it is written twice. One thing differs:
// the shim has a copy of the settings' source in its object, while a Go program has that of package params already. So the name
// hccl_setting stands for a function of this package here, which passes the question on.
//
// It is no part of libhccl_core.so, where the shim has its own. Go programs start other programs but do not fork, and all
// descriptors are CLOEXEC, so none of the fork handlers is registered. The thread that answers is C's and blocks all signals.
//
// Package hccl calls it, and tests.
package root

// #cgo CFLAGS: -std=gnu11 -D_GNU_SOURCE -Dhccl_setting=hccl_root_setting
// #cgo LDFLAGS: -lpthread -ldl
// #include "../../../capi/shim/meet.h"
// #include "setting.h"
import "C"

import (
	"sync"

	"hccl.dev/hccl/internal/params"
)

// IDSize is the size of a unique id in bytes.
const IDSize = C.HCCL_ID_SIZE

// Error is a refusal of the C side: an ncclResult_t and its text.
type Error struct {
	result int
	text   string
}

func (e *Error) Error() string { return e.text }

// Result is the ncclResult_t of the error.
func (e *Error) Result() int { return e.result }

var start sync.Once

func use() { start.Do(func() { C.hccl_root_use(params.SourceFunc()) }) }

// textSize is room for any text of the C side.
const textSize = 512

// NewID makes a unique id. This process answers the roll call under it until it ends.
func NewID() (id [IDSize]byte, err error) {
	use()
	var text [textSize]C.char
	res := C.hccl_meet_new_id((*C.uchar)(&id[0]), &text[0], textSize)
	return id, failure(res, &text)
}

// Join comes before the rank meets the others under id: where it falls to this process, it becomes the one that answers.
func Join(id *[IDSize]byte, rank int) error {
	use()
	var text [textSize]C.char
	return failure(C.hccl_meet_join((*C.uchar)(&id[0]), C.int(rank), &text[0], textSize), &text)
}

// Strangers counts the connections to the maker of ids that could not prove a secret in time.
func Strangers() uint64 { return uint64(C.hccl_meet_strangers()) }

func failure(res C.int, text *[textSize]C.char) error {
	if res == 0 {
		return nil
	}
	return &Error{int(res), C.GoString(&text[0])}
}
