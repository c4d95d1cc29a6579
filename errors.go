package hccl

import (
	"context"
	"errors"
	"fmt"

	"hccl.dev/hccl/core"
)

// Kind is what sort of failure an error is. Kinds are errors, for errors.Is:
//
//	if errors.Is(err, hccl.ErrRemote) { … }
type Kind uint8

// The kinds.
const (
	ErrInternal Kind = iota + 1 // a defect of the library: please report it
	ErrSystem                   // this host refused something: memory, a descriptor, a connection
	ErrArgument                 // the call is wrong and was not begun; the communicator is as sound as before
	ErrUsage                    // ranks disagree about a call, or something was used out of its time
	ErrRemote                   // another rank is gone, left, or gave up
	ErrTimeout                  // a limit of the settings has passed (HCCL_INIT_TIMEOUT, HCCL_TIMEOUT)
	ErrContext                  // the call's context has ended; errors.Is finds the context's error as well
)

var kindTexts = [...]string{ErrInternal: "defect", ErrSystem: "system error", ErrArgument: "invalid argument", ErrUsage: "invalid usage",
	ErrRemote: "a rank failed", ErrTimeout: "a limit has passed", ErrContext: "the context has ended"}

func (k Kind) Error() string {
	if int(k) < len(kindTexts) && kindTexts[k] != "" {
		return "hccl: " + kindTexts[k]
	}
	return "hccl: unknown kind of error"
}

// Error is a failure of a call or of a communicator.
type Error struct {
	Kind  Kind
	Text  string // what, who, where, and what to do
	Ranks []int  // the ranks that it is about: gone, absent, or in disagreement; nil where none is known
	cause error
}

func (e *Error) Error() string { return "hccl: " + e.Text }

// Unwrap is the error behind this one: that of a context, of the system.
func (e *Error) Unwrap() error { return e.cause }

// Is reports whether target is e's kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

func argumentf(format string, args ...any) error {
	return &Error{Kind: ErrArgument, Text: fmt.Sprintf(format, args...)}
}

var kinds = map[core.Result]Kind{core.SystemError: ErrSystem, core.UnhandledCudaError: ErrSystem, core.InvalidArgument: ErrArgument,
	core.InvalidUsage: ErrUsage, core.RemoteError: ErrRemote, core.Timeout: ErrTimeout}

// failure gives an error of the core the form of this package. nil stays nil.
func failure(err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Kind: ErrInternal, Text: err.Error(), cause: err}
	if k, ok := kinds[core.ResultOf(err)]; ok {
		e.Kind = k
	}
	var known *core.Error
	if errors.As(err, &known) {
		e.Ranks = known.Ranks
	}
	return e
}

// ended is the error of a call whose context has ended; err is how the core ended it, nil if it was not begun.
func ended(ctx context.Context, err error) error {
	e := &Error{Kind: ErrContext, cause: context.Cause(ctx)}
	if err == nil {
		e.Text = fmt.Sprintf("the call was not begun: %v", e.cause)
		return e
	}
	e.Text = fmt.Sprintf("%v: %v", e.cause, err)
	var known *core.Error
	if errors.As(err, &known) {
		e.Ranks = known.Ranks
	}
	return e
}
