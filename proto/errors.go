package proto

import "fmt"

// PeerError is a fault in what a peer sent or in the port to it.
type PeerError struct {
	Rank    int
	Channel int
	Err     error
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("rank %d, channel %d: %v", e.Rank, e.Channel, e.Err)
}
func (e *PeerError) Unwrap() error { return e.Err }

// SizeError says that a peer's slice is not as long as this rank's call makes it: the ranks differ in a count.
type SizeError struct{ Got, Want uint64 }

func (e *SizeError) Error() string {
	return fmt.Sprintf("a slice of %d bytes arrived where %d are due: the ranks differ in their counts", e.Got, e.Want)
}

// Result is ncclInvalidUsage: the program's ranks do not fit together.
func (e *SizeError) Result() int { return 5 }
