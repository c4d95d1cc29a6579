package core

import (
	"errors"
	"fmt"
	"runtime/debug"

	"hccl.dev/hccl/core/boot"
	"hccl.dev/hccl/internal/log"
)

// Result is an ncclResult_t.
type Result int

// The results of the C ABI.
const (
	Success Result = iota
	UnhandledCudaError
	SystemError
	InternalError
	InvalidArgument
	InvalidUsage
	RemoteError
	InProgress
	Timeout
)

// Error is a failure as a caller sees it: a result of the C ABI and a sentence that says what, who, where and what to do.
type Error struct {
	Result Result
	Text   string
	Ranks  []int // whose doing or absence it is, where that is known: for programs, as the text is for people
	cause  error
}

func (e *Error) Error() string { return e.Text }
func (e *Error) Unwrap() error { return e.cause }

// failf makes an Error; a %w in format keeps its cause and the ranks that it is about.
func failf(r Result, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Result: r, Text: err.Error(), Ranks: blamed(err), cause: errors.Unwrap(err)}
}

// blamed lists the ranks that an error inside err is about.
func blamed(err error) []int {
	var e *Error
	if errors.As(err, &e) {
		return e.Ranks
	}
	return boot.Blamed(err)
}

// of names the ranks that an error is about.
func (e *Error) of(ranks ...int) *Error {
	e.Ranks = ranks
	return e
}

// ResultOf is the result that an error stands for: its own, that of an error inside it that knows one, or ncclInternalError.
func ResultOf(err error) Result {
	if err == nil {
		return Success
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Result
	}
	var known interface{ Result() int }
	if errors.As(err, &known) {
		return Result(known.Result())
	}
	return InternalError
}

// asError gives err the form that callers see, keeping one that has it.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Result: ResultOf(err), Text: err.Error(), Ranks: blamed(err), cause: err}
}

// defect is a panic as an error.
func defect(p any) *Error {
	log.Warn("a defect in HCCL, please report it: %v\n%s", p, debug.Stack())
	return failf(InternalError, "a defect in HCCL: %v", p)
}
