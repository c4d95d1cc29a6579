package boot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// Layouts of the id and the roll call. capi/shim/meet.h has the pictures; a test compares the numbers.
const (
	wireVersion = 4

	idSize, idMagicValue                 = 128, 0x4449434e
	idMagic, idVersion, idPort, idNumber = 0, 4, 6, 8
	idSecret, idRoot, idFixed, idCount   = 16, 32, 40, 41
	idLeft, idAddresses                  = 42, 43
	addressV4                            = 0xf4

	challengeSize, challengeMagicValue = 32, 0x4843434e
	challengeMagic, challengeVersion   = 0, 4
	challengeEncrypts                  = 6
	challengeRoot, challengeNonce      = 8, 16

	helloSize, helloMagicValue                           = 52, 0x4f4c484e
	helloMagic, helloVersion, helloLibrary               = 0, 4, 6
	helloContact, helloRank, helloNranks                 = 8, 12, 16
	helloIDs, helloRole                                  = 20, 23
	helloNumber, helloNonce, helloMark                   = 24, 32, 48
	member, speaker, asker, herald                       = 0, 1, 2, 3
	maxLibrary, maxContact, maxRanks, macSize            = 512, 512, 1 << 20, 32
	requestSize, requestMagicValue                       = 8, 0x5152434e
	requestMagic, requestWhat                            = 0, 4
	ask, askTimeout, askAbort                            = 1, 2, 3
	answerSize, answerMagicValue                         = 16, 0x574e414e
	answerMagic, answerKind, answerLength                = 0, 4, 8
	answerSerial, maxAnswer                              = 12, 1 << 20
	kindGo, kindMissing, kindFailed, kindAbsent          = 1, 2, 3, 4
	maxNamed                                             = 256
	whyUsed, whyDuplicate, whyNranks, whyVersion         = 1, 2, 3, 4
	whyTimeout, whyGone, whyAborted, whyGarbage, whyFull = 5, 6, 7, 8, 9
	whyMaker, whyIDs, whyKey                             = 10, 11, 12
)

var le = binary.LittleEndian

func mac(secret []byte, label string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(label))
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// hello is what a rank answers to the challenge.
func (m *meeting) hello(challenge, nonce []byte) []byte {
	library := configured().Library
	if m.key != nil {
		library = "told to nobody, as it encrypts" // whoever reads the wire would read this
	}
	library = library[:min(len(library), maxLibrary)]
	to := m.news
	if to == nil {
		to = m.seal(m.self.encode())
	}
	b := make([]byte, helloSize, helloSize+len(library)+len(to)+macSize)
	le.PutUint32(b[helloMagic:], helloMagicValue)
	le.PutUint16(b[helloVersion:], wireVersion)
	le.PutUint16(b[helloLibrary:], uint16(len(library)))
	le.PutUint32(b[helloContact:], uint32(len(to)))
	le.PutUint32(b[helloRank:], uint32(m.rank))
	le.PutUint32(b[helloNranks:], uint32(m.n))
	le.PutUint32(b[helloIDs:], uint32(m.ids))
	b[helloRole] = m.role
	le.PutUint32(b[helloMark:], m.mark())
	le.PutUint64(b[helloNumber:], m.id.number)
	copy(b[helloNonce:], nonce)
	b = append(append(b, library...), to...)
	return append(b, mac(m.id.secret[:], "hccl hello", challenge, b)...)
}

func request(what uint32) []byte {
	return le.AppendUint32(le.AppendUint32(nil, requestMagicValue), what)
}

// answer is one answer of the root; its payload is still to be decoded.
type answer struct {
	kind    uint16
	payload []byte
}

// cutAnswer takes the next whole answer off b. ok is false for bytes that the root did not send.
func cutAnswer(b, secret, nonce, challenge []byte, serial uint32) (a *answer, rest []byte, ok bool) {
	if len(b) < answerSize {
		return nil, b, true
	}
	n := le.Uint32(b[answerLength:])
	if le.Uint32(b[answerMagic:]) != answerMagicValue || n > maxAnswer || le.Uint32(b[answerSerial:]) != serial {
		return nil, nil, false
	}
	end := answerSize + int(n)
	if len(b) < end+macSize {
		return nil, b, true
	}
	if !hmac.Equal(b[end:end+macSize], mac(secret, "hccl answer", nonce, challenge, b[:end])) {
		return nil, nil, false
	}
	return &answer{le.Uint16(b[answerKind:]), b[answerSize:end]}, b[end+macSize:], true
}

// partner is a rank that this one connects to.
type partner struct {
	rank int
	contact
}

// decodeGo returns the partners of the rank: those 1, 2, 4, ... places further on.
func (m *meeting) decodeGo(b []byte) ([]partner, bool) {
	if len(b) < 4 {
		return nil, false
	}
	var ps []partner
	count := le.Uint32(b)
	b = b[4:]
	at := m.placeOf(m.rank)
	for step := 1; step < m.size(); step *= 2 {
		rank := m.rankAt(at + step)
		if len(b) < 8 || int(le.Uint32(b)) != rank || uint64(le.Uint32(b[4:])) > uint64(len(b)-8) {
			return nil, false
		}
		end := 8 + int(le.Uint32(b[4:]))
		open, ok := m.open(b[8:end], rank)
		if !ok {
			return nil, false
		}
		to, ok := decodeContact(open)
		if !ok {
			return nil, false
		}
		ps = append(ps, partner{rank, to})
		b = b[end:]
	}
	return ps, len(b) == 0 && int(count) == len(ps)
}

func decodeRanks(b []byte) []int {
	ranks := make([]int, 0, len(b)/4)
	for ; len(b) >= 4; b = b[4:] {
		ranks = append(ranks, int(le.Uint32(b)))
	}
	return ranks
}

// failed is why a roll call has failed.
type failed struct {
	why     uint32
	rank    int
	missing []int
	text    string
}

// encode cuts what does not fit into most bytes.
func (f *failed) encode(most int) []byte {
	missing := f.missing[:min(len(f.missing), maxNamed, (most-12)/4)]
	b := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, f.why), uint32(f.rank)), uint32(len(missing)))
	for _, r := range missing {
		b = le.AppendUint32(b, uint32(r))
	}
	return append(b, f.text[:min(len(f.text), most-len(b))]...)
}

func decodeFailed(b []byte) (*failed, bool) {
	if len(b) < 12 || uint64(le.Uint32(b[8:])) > uint64(len(b)-12)/4 {
		return nil, false
	}
	end := 12 + 4*int(le.Uint32(b[8:]))
	return &failed{le.Uint32(b), int(le.Uint32(b[4:])), decodeRanks(b[12:end]), string(b[end:])}, true
}
