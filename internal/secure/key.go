// Package secure protects a connection between two processes that hold the same pre-shared key.
//
//	Key        what a process makes of the key's bytes, once: an identity for each end of a connection, and keys for few words
//	Handshake  TLS 1.3 between two such identities; whoever owns the socket carries its bytes
//	Session    a connection's two directions after it: an authenticated cipher under keys that TLS exports
//
// The handshake is crypto/tls's. Both ends have certificates of ed25519 keys that follow from the pre-shared key, and accept no
// other, so only its holders get through; the secrets of the connection come from a fresh exchange, so a key that is stolen later
// opens nothing that was recorded. TLS's own records are not used behind the handshake, as net/tcp seals its slices without a copy
// and without an allocation.
//
// What it is not: it reads no file and no setting, touches no socket, and does not say who may join. Packages core/boot and net/tcp
// call it; package core makes the Key.
package secure

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"time"
)

// Limits of a pre-shared key, in bytes.
const (
	MinKey = 16
	MaxKey = 4096
)

// Key is a pre-shared key, ready for use. It does not hold the bytes that it was made of.
type Key struct {
	root   []byte // HKDF's key, of which everything else is derived
	dialer identity
	host   identity
}

// identity proves that its holder has the key, at one end of a connection: what a dialer proves is no proof of a host.
type identity struct {
	public ed25519.PublicKey
	cert   tls.Certificate
}

// NewKey makes a Key. An error never tells anything of psk.
func NewKey(psk []byte) (*Key, error) {
	if len(psk) < MinKey || len(psk) > MaxKey {
		return nil, errors.New("a key has 16 to 4096 bytes")
	}
	root, err := hkdf.Extract(sha256.New, psk, []byte("hccl pre-shared key 1"))
	if err != nil {
		return nil, err
	}
	k := &Key{root: root}
	if k.dialer, err = k.identity("dialer"); err != nil {
		return nil, err
	}
	k.host, err = k.identity("host")
	return k, err
}

// derive is n bytes that only holders of the key know.
func (k *Key) derive(what string, n int) []byte { return expand(k.root, what, n) }

// expand derives n bytes, at most 255 hashes, of a pseudo-random key: HKDF cannot fail then.
func expand(secret []byte, what string, n int) []byte {
	b, err := hkdf.Expand(sha256.New, secret, what, n)
	if err != nil {
		panic(err)
	}
	return b
}

func (k *Key) identity(who string) (id identity, err error) {
	private := ed25519.NewKeyFromSeed(k.derive("identity of the "+who, ed25519.SeedSize))
	id.public = private.Public().(ed25519.PublicKey)
	// What stands in a certificate besides its public key is looked at by nobody.
	name := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0)}
	der, err := x509.CreateCertificate(rand.Reader, name, name, id.public, private)
	id.cert = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
	return id, err
}

// Mark is a number, never 0, by which ranks that meet see whether they have the same key. It is of one meeting, whose secret only
// those know who were invited, so that it tells others nothing.
func (k *Key) Mark(meeting []byte) uint32 {
	b := k.derive("mark of a meeting "+string(meeting), 4)
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24 | 1
}

const sealedMore = 12 + 16 // nonce, tag

// Seal encrypts few words for the other holders of the key. What they are about, and of which meeting, is authenticated with them.
func (k *Key) Seal(words, about, meeting []byte) []byte {
	aead := k.words(meeting)
	nonce := make([]byte, aead.NonceSize(), sealedMore+len(words))
	rand.Read(nonce)
	return aead.Seal(nonce, nonce, words, about)
}

// Open returns what Seal was given, ok is false for anything else.
func (k *Key) Open(sealed, about, meeting []byte) (words []byte, ok bool) {
	if len(sealed) < sealedMore {
		return nil, false
	}
	aead := k.words(meeting)
	words, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], about)
	return words, err == nil
}

// words is the cipher of Seal. Its key is of one meeting, in which few words are sealed: random nonces do not meet.
func (k *Key) words(meeting []byte) cipher.AEAD {
	return newGCM(k.derive("words of a meeting "+string(meeting), 16))
}

// newGCM is for keys of 16 bytes, with which it cannot fail.
func newGCM(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}
