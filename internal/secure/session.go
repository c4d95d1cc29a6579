package secure

import (
	"crypto/cipher"
	"crypto/tls"
	"encoding/binary"
	"errors"
)

// A record carries bytes of a connection. Its head is in clear and authenticated with them; numbers are little-endian.
//
//	0  version     1 byte
//	1  0           1
//	2  key         2   number of the key, from 0: each serves so many bytes
//	4  length      4   of the bytes, at most MaxRecord
//	8  bytes       sealed
//	   tag        16
//
// What makes each record's nonce is its place in its direction, which both ends count: one that is lost, repeated, moved to another
// place or changed in any bit does not open, and neither does any behind it.
const (
	HeadSize  = 8
	TagSize   = 16
	MaxRecord = 32 << 10 // sealed while they are in the fastest cache
	version   = 1

	// AES-GCM keeps an attacker's odds below 2^-57 up to about 2^38 bytes under one key (RFC 8446, 5.5).
	keyBytes = 1 << 36
)

// Session is the two directions of a connection. Each may be used by one thread at a time.
type Session struct {
	Out, In *Direction
}

func newSession(c *tls.Conn, out, in string) (*Session, error) {
	state := c.ConnectionState()
	var secrets [2][]byte
	for k, what := range []string{out, in} {
		var err error
		if secrets[k], err = state.ExportKeyingMaterial("EXPERIMENTAL hccl records", []byte(what), 32); err != nil {
			return nil, err
		}
	}
	return &Session{newDirection(secrets[0]), newDirection(secrets[1])}, nil
}

// Direction seals records at one end of a connection, or opens them at the other.
type Direction struct {
	aead   cipher.AEAD
	iv     [12]byte
	nonce  [12]byte
	secret []byte // of which the keys after this one follow
	key    uint16
	seq    uint64 // of the next record
	left   int64  // bytes that this key may still serve
}

func newDirection(secret []byte) *Direction {
	d := &Direction{}
	d.take(secret)
	return d
}

// take makes a key of secret, which is forgotten for the one that follows: who gets hold of that cannot go back.
func (d *Direction) take(secret []byte) {
	d.aead = newGCM(expand(secret, "key", 16))
	copy(d.iv[:], expand(secret, "iv", len(d.iv)))
	d.secret = expand(secret, "next", len(secret))
	d.left = keyBytes
}

// ready prepares for a record of n bytes. Both ends do so at the same place.
func (d *Direction) ready(n int) {
	if d.left < int64(n) {
		d.take(d.secret)
		d.key++
	}
	d.left -= int64(n)
	d.nonce = d.iv
	tail := d.nonce[len(d.nonce)-8:]
	binary.LittleEndian.PutUint64(tail, binary.LittleEndian.Uint64(tail)^d.seq)
	d.seq++
}

// Seal appends a record of b, at most MaxRecord bytes, to dst. They must not overlap, unless b stands where it will stand sealed.
func (d *Direction) Seal(dst, b []byte) []byte {
	d.ready(len(b))
	at := len(dst)
	dst = append(dst, version, 0, byte(d.key), byte(d.key>>8), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(dst[at+4:], uint32(len(b)))
	return d.aead.Seal(dst, d.nonce[:], b, dst[at:])
}

// Length is how many bytes the record holds that begins with head, of HeadSize bytes.
func (d *Direction) Length(head []byte) (int, error) {
	n := binary.LittleEndian.Uint32(head[4:])
	if head[0] != version || head[1] != 0 || n > MaxRecord || n == 0 {
		return 0, ErrForged
	}
	return int(n), nil
}

// Open appends what a whole record holds to dst, which has room for it, and leaves nothing of one that is not in order.
func (d *Direction) Open(dst, record []byte) ([]byte, error) {
	d.ready(len(record) - HeadSize - TagSize)
	if binary.LittleEndian.Uint16(record[2:]) != d.key {
		return dst, ErrForged
	}
	out, err := d.aead.Open(dst, d.nonce[:], record[HeadSize:], record[:HeadSize])
	if err != nil {
		return dst, ErrForged
	}
	return out, nil
}

// ErrForged is a record that the other end did not send as it came: at this place, and in these bits.
var ErrForged = errors.New("what came is not what was sent: bytes were changed, repeated or left out on the way; " +
	"see who can write to this network, or whether a device on it rewrites TCP")

// Text says how a session protects, for logs.
const Text = "TLS 1.3 handshake, AES-128-GCM"
