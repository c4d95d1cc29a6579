package tcp

import (
	"errors"
	"fmt"
)

// resultRemote is the value of ncclRemoteError: the fault is at another rank or on the way to it.
const resultRemote = 6

// GoneError is what a port answers once the rank at its other end is gone and everything that it sent has been read.
type GoneError struct {
	Rank    int
	Orderly bool  // it said goodbye: all that it had committed was delivered
	Cause   error // nil when Orderly
}

func (e *GoneError) Error() string {
	if e.Orderly {
		return fmt.Sprintf("rank %d has left the communicator; it takes part in no further operation", e.Rank)
	}
	return fmt.Sprintf("connection to rank %d ended without a goodbye: %v; its process probably died, see its log", e.Rank, e.Cause)
}

func (e *GoneError) Unwrap() error { return e.Cause }

// Result is the error's value in NCCL's ABI.
func (e *GoneError) Result() int { return resultRemote }

// FrameError says that a rank sent bytes that are no frame of this library, or a frame that breaks the rules of its flow.
type FrameError struct {
	Rank int
	What string
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("rank %d sent a bad frame: %s; check that all ranks load the same version of the library", e.Rank, e.What)
}

// Result is the error's value in NCCL's ABI.
func (e *FrameError) Result() int { return resultRemote }

// ForgedError says that a sealed connection brought what the rank at its other end did not send so.
type ForgedError struct {
	Rank  int
	Cause error
}

func (e *ForgedError) Error() string {
	return fmt.Sprintf("on the way from rank %d: %v", e.Rank, e.Cause)
}

func (e *ForgedError) Unwrap() error { return e.Cause }

// Result is the error's value in NCCL's ABI.
func (e *ForgedError) Result() int { return resultRemote }

var (
	errClosed    = errors.New("this communicator's connections are closed")
	errTwice     = errors.New("there is one already")
	errDropped   = errors.New("the other end gave it up")
	errStill     = errors.New("nothing moves on it, while others move")
	errReplaced  = errors.New("another took its place")
	errForgotten = errors.New("its process knows of no such rank any more")
	errNoStaging = errors.New("this process has no memory left to receive into")
)
