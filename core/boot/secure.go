package boot

import (
	"fmt"
	"net/netip"

	"hccl.dev/hccl/internal/secure"
)

// Conn is a connection whose ends have proved themselves to each other. The descriptor is non-blocking. Keys are for what goes over it
// where the process has a pre-shared key, else nil.
type Conn struct {
	FD   int
	Keys *secure.Session
}

// shaking is a TLS handshake on its way, with the proof of the secret in it.
type shaking struct {
	s     *stream
	h     *secure.Handshake
	heard bool // something of the other end
}

// shake begins: what it has to say goes out at once, or with the next turn.
func shake(s *stream, h *secure.Handshake) (*shaking, error) {
	return &shaking{s: s, h: h}, s.send(h.Say())
}

// turn goes on as far as what has arrived allows; session is nil until both ends have proved themselves. It reads nothing behind that.
func (k *shaking) turn() (session *secure.Session, err error) {
	if err := k.s.flush(); err != nil {
		return nil, err
	}
	for session == nil {
		want, _ := secure.Want(k.s.in)
		err := k.s.fill(want)
		k.heard = k.heard || len(k.s.in) > 0
		switch whole, ok := secure.Want(k.s.in); {
		case !ok:
			return nil, errStranger
		case len(k.s.in) < want:
			return nil, err
		case whole > want:
			continue // the head says how much more
		}
		record := k.s.in
		k.s.in = nil
		k.h.Feed(record)
		told := k.s.send(k.h.Say()) // where it failed too
		if session, err = k.h.Done(); err == nil {
			err = told
		}
		if err != nil {
			return nil, err
		}
	}
	return session, nil
}

// --- Two processes that cannot agree on a key ---

const giveAllTheSame = "give all ranks the same key, by ncclSetEncryption or HCCL_ENCRYPTION_KEY_FILE"

// KeyError is ranks that do not have the same pre-shared key; Rank is -1 where only an address is known.
type KeyError struct {
	Rank int
	Text string
}

func (e *KeyError) Error() string { return e.Text + ": " + giveAllTheSame }

// Result is the ncclResult_t of the error.
func (e *KeyError) Result() int { return invalidUsage }

// unlike is the error of a dialer whose host greets as one that encrypts, or as one that does not, and it is the other way here.
func unlike(host netip.AddrPort, encrypts bool) error {
	if encrypts {
		return &KeyError{-1, fmt.Sprintf("the process at %v encrypts its connections, and this one has no encryption key", host)}
	}
	return &KeyError{-1, fmt.Sprintf("this process encrypts its connections, and the one at %v has no encryption key", host)}
}

// otherKey is the error of a handshake, as a dialer tells it.
func otherKey(host netip.AddrPort, err error) error {
	if !secure.OtherKey(err) {
		return err
	}
	return &KeyError{-1, fmt.Sprintf("the process at %v has another encryption key than this one", host)}
}

// --- The roll call, whose maker has no cipher ---

// mark is what a rank says of its key, 0 where it has none.
func (m *meeting) mark() uint32 {
	if m.key == nil {
		return 0
	}
	return m.key.Mark(m.id.secret[:])
}

// seal makes b, which the maker passes on to rank's partners, unreadable to anybody else.
func (m *meeting) seal(b []byte) []byte {
	if m.key == nil {
		return b
	}
	return m.key.Seal(b, m.about(m.rank), m.id.secret[:])
}

// open returns what rank sealed.
func (m *meeting) open(b []byte, rank int) ([]byte, bool) {
	if m.key == nil {
		return b, true
	}
	return m.key.Open(b, m.about(rank), m.id.secret[:])
}

func (m *meeting) about(rank int) []byte {
	b := le.AppendUint32(le.AppendUint32([]byte("contact"), uint32(rank)), uint32(m.n))
	return le.AppendUint64(append(b, m.id.root[:]...), m.id.number)
}
