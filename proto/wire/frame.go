package wire

// FrameSize is the room that a frame's header takes at the front of a slice of a Msg port; the payload follows.
const FrameSize = 64

// FrameKind is what a frame says.
type FrameKind uint8

// A message of few bytes is one Eager frame. A larger one is announced; the receiver clears it when a receive has matched it, and
// only then does its data flow, so that a message nobody asked for yet never stands in the way of others.
//
//	sender    Announce ──►                     Data Data Data ──►
//	receiver              (a receive matches) ◄── Clear
const (
	Eager FrameKind = 1 + iota
	Announce
	Clear
	Data
)

// Frame is the header. ID numbers the messages from one rank to another; Count and Type are the message's, Bytes the payload's
// behind this header, Offset where it belongs in the message.
type Frame struct {
	Version uint8
	Kind    FrameKind
	Type    uint8
	_       uint8
	Tag     int32
	ID      uint64
	Count   uint64
	Bytes   uint64
	Offset  uint64
	_       [3]uint64 // reserved: key id and authentication tag
}
