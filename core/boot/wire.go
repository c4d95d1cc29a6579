package boot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Layouts of the id and the roll call. capi/shim/meet.h has the pictures; a test compares the numbers.
const (
	wireVersion = 2

	idSize, idMagicValue                 = 128, 0x4449434e
	idMagic, idVersion, idPort, idNumber = 0, 4, 6, 8
	idSecret, idRoot, idFixed, idCount   = 16, 32, 40, 41
	idAddresses                          = 42
	addressSize, idMaxAddresses          = 17, 5

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

// uniqueID is a parsed id.
type uniqueID struct {
	number uint64
	secret [16]byte
	root   [8]byte
	fixed  bool // of NCCL_COMM_ID: rank 0 listens when it calls init
	addrs  []netip.AddrPort
}

func parseID(b []byte) (*uniqueID, error) {
	if len(b) != idSize || le.Uint32(b[idMagic:]) != idMagicValue {
		return nil, &ArgumentError{"the unique id was not made by ncclGetUniqueId of this library: pass its 128 bytes on unchanged"}
	}
	id := &uniqueID{number: le.Uint64(b[idNumber:]), fixed: b[idFixed] != 0}
	copy(id.secret[:], b[idSecret:])
	copy(id.root[:], b[idRoot:])
	port := le.Uint16(b[idPort:])
	count := int(b[idCount])
	if count < 1 || count > idMaxAddresses || port == 0 {
		return nil, &ArgumentError{"the unique id is damaged: pass its 128 bytes on unchanged"}
	}
	for k := range count {
		a, ok := getAddress(b[idAddresses+k*addressSize:])
		if !ok {
			return nil, &ArgumentError{"the unique id is damaged: pass its 128 bytes on unchanged"}
		}
		id.addrs = append(id.addrs, netip.AddrPortFrom(a, port))
	}
	return id, nil
}

// parseIDs reads the ids that n ranks are shared out to. Ids made from NCCL_COMM_ID are all the same one, which then serves all.
func parseIDs(b []byte, n int) ([]*uniqueID, error) {
	if len(b) < 2*idSize || len(b)%idSize != 0 {
		id, err := parseID(b)
		return []*uniqueID{id}, err
	}
	if n < len(b)/idSize {
		return nil, &ArgumentError{fmt.Sprintf("%d unique ids for %d ranks: there can be one for each rank, not more", len(b)/idSize, n)}
	}
	var ids []*uniqueID
	seen := map[string]int{}
	for k := 0; len(b) > 0; k, b = k+1, b[idSize:] {
		id, err := parseID(b[:idSize])
		if err != nil {
			return nil, err
		}
		before, again := seen[string(b[:idSize])]
		switch {
		case again && id.fixed:
			continue
		case again:
			return nil, &ArgumentError{fmt.Sprintf("unique ids %d and %d are the same one: make each with a call of ncclGetUniqueId of its own",
				before, k)}
		}
		seen[string(b[:idSize])] = k
		ids = append(ids, id)
	}
	return ids, nil
}

func getAddress(b []byte) (netip.Addr, bool) {
	switch b[0] {
	case 4:
		return netip.AddrFrom4([4]byte(b[1:])), true
	case 6:
		return netip.AddrFrom16([16]byte(b[1:])), true
	}
	return netip.Addr{}, false
}

func putAddress(b []byte, a netip.Addr) []byte {
	var out [addressSize]byte
	if a.Is4() {
		out[0] = 4
	} else {
		out[0] = 6
	}
	copy(out[1:], a.AsSlice())
	return append(b, out[:]...)
}

// contact is how to reach a rank's inbox: opaque to the root, which hands it to the rank's partners.
//
//	key (16) count (1) then for each address: family and address (17), port (2)
type contact struct {
	key   Key
	addrs []netip.AddrPort
}

func (c *contact) encode() []byte {
	b := append(append([]byte{}, c.key[:]...), byte(len(c.addrs)))
	for _, a := range c.addrs {
		b = le.AppendUint16(putAddress(b, a.Addr()), a.Port())
	}
	return b
}

func decodeContact(b []byte) (c contact, ok bool) {
	const head, each = len(c.key) + 1, addressSize + 2
	if len(b) < head || len(b) != head+int(b[head-1])*each {
		return c, false
	}
	copy(c.key[:], b)
	for b = b[head:]; len(b) > 0; b = b[each:] {
		a, ok := getAddress(b)
		if !ok {
			return c, false
		}
		c.addrs = append(c.addrs, netip.AddrPortFrom(a, le.Uint16(b[addressSize:])))
	}
	return c, true
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
