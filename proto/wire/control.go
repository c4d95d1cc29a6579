package wire

import (
	"encoding/binary"
	"fmt"
)

// Header is what a rank tells of an operation that it has begun.
type Header struct {
	Seq                    uint64
	Lane                   uint32
	Func, Type, Red, Flags uint8
	Root                   int32
	Count, Extra           uint64
}

// ControlKind is what a control message says.
type ControlKind uint8

// The kinds.
const (
	TellHeader ControlKind = 1 + iota // I wait in this operation
	TellFault                         // these two ranks disagree
	TellState                         // I leave, or abort
)

// Control is a message between ranks beside the data.
type Control struct {
	Kind    ControlKind
	Posted  bool // TellState: Headers[0] is the last operation begun
	State   uint32
	Ranks   [2]int32
	Headers [2]Header
}

const controlSize = 2 + 2 + 4 + 8 + 2*headerSize

const headerSize = 8 + 4 + 4 + 4 + 8 + 8

// Append appends m's encoding to b.
func (m *Control) Append(b []byte) []byte {
	b = append(b, Version, byte(m.Kind), flag(m.Posted), 0)
	b = binary.LittleEndian.AppendUint32(b, m.State)
	b = binary.LittleEndian.AppendUint32(b, uint32(m.Ranks[0]))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.Ranks[1]))
	for i := range m.Headers {
		h := &m.Headers[i]
		b = binary.LittleEndian.AppendUint64(b, h.Seq)
		b = binary.LittleEndian.AppendUint32(b, h.Lane)
		b = append(b, h.Func, h.Type, h.Red, h.Flags)
		b = binary.LittleEndian.AppendUint32(b, uint32(h.Root))
		b = binary.LittleEndian.AppendUint64(b, h.Count)
		b = binary.LittleEndian.AppendUint64(b, h.Extra)
	}
	return b
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Decode reads what Append wrote.
func (m *Control) Decode(b []byte) error {
	if len(b) != controlSize || b[0] != Version {
		return fmt.Errorf("a control message of %d bytes, %d are expected", len(b), controlSize)
	}
	r := reader{b: b[4:]}
	*m = Control{Kind: ControlKind(b[1]), Posted: b[2] == 1, State: r.u32()}
	m.Ranks = [2]int32{int32(r.u32()), int32(r.u32())}
	for i := range m.Headers {
		h := Header{Seq: r.u64(), Lane: r.u32()}
		four := r.take(4)
		h.Func, h.Type, h.Red, h.Flags = four[0], four[1], four[2], four[3]
		h.Root, h.Count, h.Extra = int32(r.u32()), r.u64(), r.u64()
		m.Headers[i] = h
	}
	return r.err
}
