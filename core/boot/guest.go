package boot

import (
	"crypto/hmac"
	"io"
	"time"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/internal/secure"
)

// guest is a connection that has yet to prove itself.
type guest struct {
	stream
	greeting [challengeSize]byte
	until    time.Time
	shaking  *shaking // where this process encrypts
	join     []byte   // what it said then, and where it belongs
	box      *Inbox
}

func (g *guest) close() {
	if g.shaking != nil {
		g.shaking.h.Close()
	}
	g.stream.close()
}

// look reports whether g is a guest no more: handed over, or closed.
func (s *Service) look(g *guest, now time.Time) bool {
	if g.shaking != nil {
		return s.lookSecure(g, now)
	}
	err := g.fill(joinSize)
	if len(g.in) == joinSize {
		if !s.admit(g) {
			g.close()
			s.strangers.Add(1)
		}
		return true
	}
	if err == nil && now.Before(g.until) && (len(g.in) < 4 || le.Uint32(g.in) == joinMagicValue) {
		return false
	}
	if err == nil || len(g.in) > 0 { // one that left at once may have reached us at another of our addresses first
		s.strangers.Add(1)
	}
	g.close()
	return true
}

// lookSecure is look for a guest that must prove the pre-shared key as well.
func (s *Service) lookSecure(g *guest, now time.Time) bool {
	keys, err := g.shaking.turn()
	switch {
	case keys != nil && s.hand(g, keys):
		return true
	case keys == nil && err == nil && now.Before(g.until):
		return false
	case secure.OtherKey(err):
		_, from := Ends(g.fd)
		log.WarnOnce("other key", "a process at %v was refused: it has another encryption key than this one; %s", from, giveAllTheSame)
	}
	if err != io.EOF || g.shaking.heard {
		s.strangers.Add(1)
	}
	g.close()
	return true
}

// admit checks the proof of g and gives its descriptor to the inbox that it names.
func (s *Service) admit(g *guest) bool {
	welcome := s.welcome(g, g.in)
	return welcome != nil && g.send(welcome) == nil && s.hand(g, nil)
}

// welcome checks the proof of g and returns what to answer, nil where it proves nothing.
func (s *Service) welcome(g *guest, join []byte) []byte {
	if le.Uint32(join[joinMagic:]) != joinMagicValue || le.Uint16(join[joinVersion:]) != wireVersion {
		return nil
	}
	s.mu.Lock()
	box := s.inboxes[Key(join[joinKey:])]
	s.mu.Unlock()
	if box == nil || !hmac.Equal(join[joinMAC:], mac(box.secret, labelJoin, g.greeting[:], join[:joinMAC])) {
		return nil
	}
	g.box, g.join = box, join
	welcome := make([]byte, welcomeMAC, welcomeSize)
	le.PutUint32(welcome, welcomeMagicValue)
	return append(welcome, mac(box.secret, labelWelcome, g.greeting[:], join[:joinMAC])...)
}

// hand gives a guest that was welcomed to the inbox. What was said to it so far fits any new socket. By the way that it came others may be
// reached.
func (s *Service) hand(g *guest, keys *secure.Session) bool {
	_, from := Ends(g.fd)
	if len(g.out) > 0 || !g.box.put(arrival{purpose: g.join[joinPurpose], from: int(le.Uint32(g.join[joinFrom:])), Conn: Conn{g.fd, keys}}) {
		return false
	}
	s.note(from)
	return true
}
