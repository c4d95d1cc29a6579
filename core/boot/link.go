package boot

import "fmt"

// Frames of the exchange.
//
//	magic (4) kind (4) length of the payload (4) arg (4)    arg: how many blocks, or the rank that failed
//	blocks: for each, length (4) and bytes                  fail: text
const (
	frameSize, frameMagicValue = 16, 0x4d52464e
	frameMagic, frameKind      = 0, 4
	frameLength, frameArg      = 8, 12
	frameBlocks, frameFail     = 1, 2
	maxText                    = 512
)

// link is a connection to a neighbour in one round.
type link struct {
	peer   int
	dial   *dialing // until it is made; nil for the incoming
	s      *stream  // nil: not there yet
	sent   bool     // outgoing: the blocks are on their way
	blocks []byte   // incoming: what came, nil: nothing yet
	count  int
	ended  bool // the other end has closed, in order
	told   bool // it knows that this rank has failed
}

func frame(kind, arg int) []byte {
	b := make([]byte, frameSize)
	le.PutUint32(b[frameMagic:], frameMagicValue)
	le.PutUint32(b[frameKind:], uint32(kind))
	le.PutUint32(b[frameArg:], uint32(arg))
	return b
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
		case l.dial == nil && l.blocks == nil:
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
		return &RankError{arg, string(payload)}
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
