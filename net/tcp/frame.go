package tcp

import (
	"encoding/binary"
	"fmt"

	"hccl.dev/hccl/proto"
)

// The layout of a frame, version 5. Numbers are little-endian.
//
//	 0  version      1 byte
//	 1  type         1
//	 2  kind         1   of the flow: pair, all, msg
//	 3  0            1
//	 4  channel      2   of the flow
//	 6  0            2
//	 8  length       4   bytes of payload behind the header
//	12  lane         4   \           announce, leave: the rank that tells
//	16  operation    8    } proto.Tag
//	24  hash         8   /
//	32  seq          8   number of the slice in its flow, or of the control message, from 0; drop: the rail; gone: a route
//	40  ack          8   slices of the opposite flow (same kind and channel) that their reader has released; control messages heard;
//	48  route        8   which rank of which communicator sends it to which; announce, leave: the communicator; 0: a frame of the rail
//	56  0           16
//	72  payload          leave: runs of ranks, see party.leave
const (
	wireVersion = 5
	headerSize  = 72
)

type frameType uint8

const (
	frameData     frameType = 1 + iota // a slice; ack rides along
	frameAck                           // ack alone
	frameControl                       // a message of core; no flow
	frameGoodbye                       // the last frame of a rail, which its sender lets go of
	frameHeard                         // ack of control messages
	frameDrop                          // the sender has given a rail up
	frameLeave                         // to all ranks at the other end: the rank has left its communicator
	frameGone                          // answers what came for a route that leads to nobody; its number is seq
	frameAnnounce                      // a message of core to all ranks at the other end
)

// header is a frame without its payload.
type header struct {
	typ     frameType
	kind    proto.Kind
	channel uint16
	length  uint32
	tag     proto.Tag
	seq     uint64
	ack     uint64
	route   uint64
}

func (h *header) encode(b []byte) {
	_ = b[headerSize-1]
	clear(b[:headerSize])
	b[0], b[1], b[2] = wireVersion, byte(h.typ), byte(h.kind)
	binary.LittleEndian.PutUint16(b[4:], h.channel)
	binary.LittleEndian.PutUint32(b[8:], h.length)
	binary.LittleEndian.PutUint32(b[12:], h.tag.Lane)
	binary.LittleEndian.PutUint64(b[16:], h.tag.Seq)
	binary.LittleEndian.PutUint64(b[24:], h.tag.Hash)
	binary.LittleEndian.PutUint64(b[32:], h.seq)
	binary.LittleEndian.PutUint64(b[40:], h.ack)
	binary.LittleEndian.PutUint64(b[48:], h.route)
}

// decode reads what a peer sent and returns what is wrong with it, "" if nothing is. What depends on the state of a flow (seq and
// ack) is checked where the flow is known.
func (h *header) decode(b []byte) string {
	_ = b[headerSize-1]
	h.typ, h.kind = frameType(b[1]), proto.Kind(b[2])
	h.channel = binary.LittleEndian.Uint16(b[4:])
	h.length = binary.LittleEndian.Uint32(b[8:])
	h.tag = proto.Tag{Lane: binary.LittleEndian.Uint32(b[12:]), Seq: binary.LittleEndian.Uint64(b[16:]),
		Hash: binary.LittleEndian.Uint64(b[24:])}
	h.seq = binary.LittleEndian.Uint64(b[32:])
	h.ack = binary.LittleEndian.Uint64(b[40:])
	h.route = binary.LittleEndian.Uint64(b[48:])
	if b[0] != wireVersion {
		return fmt.Sprintf("wire version %d, this library speaks %d", b[0], wireVersion)
	}
	if reserved := binary.LittleEndian.Uint16(b[6:]); reserved != 0 {
		return fmt.Sprintf("reserved bytes are %d, not 0", reserved)
	}
	return h.check()
}

func (h *header) check() string {
	if h.kind > proto.Msg || h.channel >= MaxChannels {
		return fmt.Sprintf("no such flow: kind %d, channel %d", h.kind, h.channel)
	}
	limit := uint32(0)
	switch h.typ {
	case frameData:
		limit = MaxSlice
	case frameControl, frameAnnounce, frameLeave:
		limit = MaxControl
	case frameAck, frameGoodbye, frameHeard, frameDrop, frameGone:
	default:
		return fmt.Sprintf("unknown type %d", h.typ)
	}
	if h.length > limit {
		return fmt.Sprintf("type %d with %d bytes, at most %d may be", h.typ, h.length, limit)
	}
	return ""
}

// whole reports whether the payload is read at one go with the header.
func (h *header) whole() bool {
	return h.typ == frameControl || h.typ == frameAnnounce || h.typ == frameLeave
}
