package boot

import (
	"fmt"

	"hccl.dev/hccl/internal/secure"
)

// Frames of the exchange.
//
//	magic (4) kind (4) length of the payload (4) arg (4)    arg: how many blocks
//	blocks and word: for each, length (4) and bytes         fail: the payload of an answer, HCCL_FAILED in meet.h
//	done: nothing; the rank has all it needs, and its end is no failure
const (
	frameSize, frameMagicValue = 16, 0x4d52464e
	frameMagic, frameKind      = 0, 4
	frameLength, frameArg      = 8, 12
	frameBlocks, frameFail     = 1, 2
	frameWord, frameDone       = 3, 4
	maxReason                  = 12 + 4*maxNamed + 2*maxLibrary
)

// link is a connection to a neighbour in one round.
type link struct {
	of     *meeting
	peer   int
	dial   *dialing // until it is made; nil for the incoming
	s      *stream  // nil: not there yet
	sent   bool     // outgoing: the blocks are on their way
	blocks []byte   // incoming: what came, nil: nothing yet
	count  int
	word   []byte // incoming: what the speaker has heard; outgoing: not used
	passed bool   // outgoing: the word is on its way
	ready  bool   // something may have come, or is due
	polled int    // where the descriptors of the link end in the last poll
	done   bool   // outgoing: the neighbour has all it needs
	ended  bool   // the other end has closed, in order
	told   bool   // it knows that this rank has failed
	news   error  // why it has failed, as it says itself
}

func framed(kind, arg int, payload []byte) []byte {
	return append(frameHead(kind, arg, len(payload)), payload...)
}

// frameHead is a frame without its payload, for which there is room behind it.
func frameHead(kind, arg, payload int) []byte {
	b := make([]byte, frameSize, frameSize+payload)
	le.PutUint32(b[frameMagic:], frameMagicValue)
	le.PutUint32(b[frameKind:], uint32(kind))
	le.PutUint32(b[frameLength:], uint32(payload))
	le.PutUint32(b[frameArg:], uint32(arg))
	return b
}

func pack(blocks [][]byte) []byte { return appendPacked(make([]byte, 0, packedSize(blocks)), blocks) }

func packedSize(blocks [][]byte) (n int) {
	for _, block := range blocks {
		n += 4 + len(block)
	}
	return n
}

func appendPacked(b []byte, blocks [][]byte) []byte {
	for _, block := range blocks {
		b = append(le.AppendUint32(b, uint32(len(block))), block...)
	}
	return b
}

// unpack takes count blocks apart; ok is false where b does not hold exactly these.
func unpack(b []byte, count int) (blocks [][]byte, ok bool) {
	for range count {
		if len(b) < 4 || uint64(le.Uint32(b)) > uint64(len(b)-4) {
			return nil, false
		}
		end := 4 + int(le.Uint32(b))
		blocks, b = append(blocks, b[4:end:end]), b[end:]
	}
	return blocks, len(b) == 0
}

func (l *link) gone() error {
	return &RankError{l.peer, fmt.Sprintf("rank %d went away while the ranks told each other of themselves", l.peer)}
}

// read takes a frame of at most payload bytes, if a whole one is there.
func (l *link) read(payload int) error {
	for l.s != nil && !l.ended {
		want := frameSize
		if len(l.s.in) >= frameSize {
			n := int(le.Uint32(l.s.in[frameLength:]))
			if le.Uint32(l.s.in) != frameMagicValue || n > payload {
				return l.garbage()
			}
			want += n
		}
		end := l.s.fill(want)
		switch {
		case len(l.s.in) == want && (want > frameSize || le.Uint32(l.s.in[frameLength:]) == 0):
			if err := l.take(l.s.in); err != nil {
				return err
			}
			l.s.in = nil
		case len(l.s.in) == frameSize && want == frameSize: // the head tells how much more to read
		case end == nil:
			return nil
		case end == secure.ErrForged:
			return &RankError{l.peer, fmt.Sprintf("on the way from rank %d: %v", l.peer, end)}
		case l.dial == nil && l.blocks == nil, l.dial != nil && !l.done:
			return l.gone()
		default:
			l.ended = true
		}
	}
	return nil
}

func (l *link) take(b []byte) error {
	arg, payload := int(le.Uint32(b[frameArg:])), b[frameSize:]
	switch le.Uint32(b[frameKind:]) {
	case frameFail:
		if f, ok := decodeFailed(payload); ok {
			l.news = l.of.refusal(f)
			return l.news
		}
	case frameWord:
		if l.dial == nil && l.word == nil {
			l.word = payload
			return nil
		}
	case frameDone:
		if l.dial != nil {
			l.done = true
			return nil
		}
	case frameBlocks:
		if l.dial == nil && l.blocks == nil {
			l.blocks, l.count = payload, arg
			return nil
		}
	}
	return l.garbage()
}

func (l *link) garbage() error {
	return &RankError{l.peer, fmt.Sprintf("rank %d sent something else than this library would", l.peer)}
}
