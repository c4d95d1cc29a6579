package tcp

import (
	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/secure"
)

// With a pre-shared key the frames of a connection travel in records of package secure, sealed here on their way into the socket and
// opened on their way out of it. Frames know nothing of it, and a record nothing of frames: where one ends says what pieces were
// large enough to be sealed where they lie.
//
//	pieces of a batch ── seal ──> records ── send ──> socket ── recv ──> records ── open ──> staging, and the stash
//
// Sealing copies, so a slice's staging is free for its other readers at once, and the same slice differs on each rail.
const (
	copyBelow = 4 << 10                                                           // a record costs as much as copying so many bytes
	sealRoom  = 2*(secure.HeadSize+secure.MaxRecord+secure.TagSize) + 2*copyBelow // of records under way, for each direction
)

// sealing is what a connection sends. It is guarded by the peer's tx baton. nil: it sends in clear.
type sealing struct {
	by      *secure.Direction
	gather  []byte // small pieces for one record
	records []byte
	sent    int // bytes of records that the socket has taken
	held    int // bytes that were accepted and are in records which are pending
}

func newSealing(keys *secure.Session) *sealing {
	if keys == nil {
		return nil
	}
	return &sealing{by: keys.Out, gather: make([]byte, 0, secure.MaxRecord), records: make([]byte, 0, sealRoom)}
}

// pending reports whether the socket has not taken everything that send accepted.
func (s *sealing) pending() bool { return s != nil && s.sent < len(s.records) }

// send is sendmsg. What it accepts beyond what the socket takes is pending: the next call begins with it.
func (s *sealing) send(fd int, iov []unix.Iovec) (n int, e unix.Errno) {
	if s.pending() {
		if e := s.flush(fd); e != 0 {
			return 0, e
		}
	}
	s.records, s.sent = s.records[:0], 0
	n = s.seal(iov)
	if e := s.flush(fd); e != 0 && e != unix.EAGAIN && e != unix.EINTR {
		return n, e
	}
	return n, 0
}

// passed is how many bytes the socket has all of, now that send has accepted n: what it accepted before, and those unless some are
// pending.
func (s *sealing) passed(n int) (whole int) {
	if s == nil {
		return n
	}
	if whole, s.held = s.held, n; !s.pending() {
		whole, s.held = whole+n, 0
	}
	return whole
}

// seal makes records of as many bytes as there is room for, and returns how many those are.
func (s *sealing) seal(iov []unix.Iovec) (n int) {
	for i := range iov {
		piece := bytesOf(&iov[i])
		for len(piece) > 0 {
			room := cap(s.records) - len(s.records) - secure.HeadSize - secure.TagSize
			some := piece[:min(len(piece), secure.MaxRecord)]
			switch {
			case len(s.gather)+len(some) > room:
				s.close()
				return n
			case len(some) < copyBelow && len(s.gather)+len(some) <= cap(s.gather):
				s.gather = append(s.gather, some...)
			case len(s.gather) > 0:
				s.close()
				continue // there may be less room now
			default:
				s.records = s.by.Seal(s.records, some)
			}
			piece = piece[len(some):]
			n += len(some)
		}
	}
	s.close()
	return n
}

// close makes a record of what is gathered.
func (s *sealing) close() {
	if len(s.gather) > 0 {
		s.records = s.by.Seal(s.records, s.gather)
		s.gather = s.gather[:0]
	}
}

func (s *sealing) flush(fd int) unix.Errno {
	for s.sent < len(s.records) {
		n, e := send(fd, s.records[s.sent:])
		if e != 0 {
			return e
		}
		s.sent += n
	}
	return 0
}
