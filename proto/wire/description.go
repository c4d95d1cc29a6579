package wire

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"fmt"
	"io"
)

// MaxText is the most that a description may unpack to, in bytes. The largest that are known have 30 KB.
const MaxText = 1 << 20

// PackText makes a description of a text: its version, and the text deflated.
func PackText(text string) []byte {
	var b bytes.Buffer
	b.WriteByte(Version)
	w, _ := flate.NewWriter(&b, flate.DefaultCompression) // the level exists, and a Buffer takes everything
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// UnpackText is the text of a description, which must be the one of the sum.
func UnpackText(b []byte, sum [sha256.Size]byte) (string, error) {
	switch {
	case len(b) == 0:
		return "", errShort
	case sha256.Sum256(b) != sum:
		return "", fmt.Errorf("%d bytes that are not those of the checksum told before", len(b))
	case b[0] != Version:
		return "", fmt.Errorf("wire version %d, ours is %d", b[0], Version)
	}
	in := flate.NewReader(bytes.NewReader(b[1:]))
	text, err := io.ReadAll(io.LimitReader(in, MaxText+1))
	if err == nil && len(text) > MaxText {
		err = fmt.Errorf("it unpacks to more than %d bytes", MaxText)
	}
	return string(text), err
}
