package proto

import (
	"errors"

	"hccl.dev/hccl/device"
)

// ErrTag is what Peek answers when the next slice belongs to another operation: the ranks disagree about their calls.
var ErrTag = errors.New("a slice of another operation arrived: the ranks did not make the same calls in the same order")

// Tag names the operation that slices belong to. Both ends of a port state it, so that ranks which disagree notice before a byte
// is delivered.
type Tag struct {
	Lane uint32 // 0: ordinary calls; a captured operation has a lane of its own
	Seq  uint64 // number of the operation in its lane
	Hash uint64 // fingerprint of the call: function, count, type, reduction, root, plan
}

// Kind is what a port is for. Ports of different kinds between the same ranks are independent.
type Kind uint8

// The kinds of ports.
const (
	Pair Kind = iota // one reader: the given peer
	All              // every other rank of the communicator reads each slice
	Msg              // one reader; frames of point-to-point messages
)

// Out is the writing end of a port: slices that one or more ranks read in order. Nothing in it blocks.
type Out interface {
	// Begin: slices committed from here on belong to this operation, which may need so many of them unread to get on.
	Begin(t Tag, slots int)
	// Reserve returns room for a slice of n bytes, or 0: not now. The room may be written until Commit, which
	// follows before the next Reserve. n may be 0: an empty slice is a slice, with an address that is not 0. Where the transport
	// can, the room lies in its cache line as like lies in its own: copies between the two, and sums with the slice where like's
	// kind of memory is at the reader, then run on whole lines.
	Reserve(n uint64, like device.Ptr) (device.Ptr, error)
	Commit(n uint64) // hands the reserved slice to the readers; n is at most what was reserved
	// Blocker is the rank whose reading the next Reserve waits for, -1 if none.
	Blocker() int
}

// In is a reading end of a port.
type In interface {
	Begin(Tag) // slices read from here on must belong to this operation
	// Peek returns the next slice, or 0: not now. A slice of another operation is ErrTag. It stays until Release.
	Peek() (p device.Ptr, n uint64, err error)
	Release()
}

// Ports opens the ports of one rank of a communicator, on whatever transport reaches the peer.
// Each port is opened once for a channel and kept by the caller.
type Ports interface {
	Out(kind Kind, channel, peer int) (Out, error) // peer is ignored for All
	In(kind Kind, channel, peer int) (In, error)   // peer is the writer
}

// MinSlots is the fewest slices that a port of kind Pair or All must hold unread: plans may need so many to get on, and those
// with a Key.Ahead twice as many as it.
const MinSlots = 2 * ahead
