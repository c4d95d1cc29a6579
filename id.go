package hccl

import (
	"encoding/hex"
	"fmt"

	"hccl.dev/hccl/core/boot/root"
)

// ID is where the ranks of one communicator meet. It serves once. It holds a secret, without which nobody can join: whoever may
// read it may take part, so it belongs in no log.
type ID [root.IDSize]byte

// NewID makes an id. This process answers the ranks that meet under it, so it must live until they have; it need not be a rank.
func NewID() (ID, error) {
	id, err := root.NewID()
	return ID(id), failure(err)
}

// ParseID reads what Text has written.
func ParseID(text string) (id ID, err error) {
	err = id.UnmarshalText([]byte(text))
	return id, err
}

// Text is the id in hexadecimal digits, to be passed on.
func (id ID) Text() string { return hex.EncodeToString(id[:]) }

// String names the id without its secret.
func (id ID) String() string { return fmt.Sprintf("id %x of %x", id[8:16], id[32:40]) }

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.Text()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(id)) {
		return argumentf("the text of an id has %d hexadecimal digits, this has %d characters", hex.EncodedLen(len(id)), len(text))
	}
	if _, err := hex.Decode(id[:], text); err != nil {
		return argumentf("the text of an id is not hexadecimal: %v", err)
	}
	return nil
}

// MarshalBinary implements encoding.BinaryMarshaler.
func (id ID) MarshalBinary() ([]byte, error) { return id[:], nil }

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (id *ID) UnmarshalBinary(b []byte) error {
	if len(b) != len(id) {
		return argumentf("an id has %d bytes, this has %d", len(id), len(b))
	}
	copy(id[:], b)
	return nil
}
