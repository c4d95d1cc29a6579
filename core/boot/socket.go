package boot

import (
	"io"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/secure"
)

// stream is a non-blocking connection with what was read ahead and what could not be sent yet.
type stream struct {
	fd     int   // -1: closed, or near
	near   *near // in the place of a socket
	in     []byte
	out    []byte          // as it goes over the wire
	keys   *secure.Session // nil: in clear
	record []byte          // the beginning of one
	opened []byte          // of the last record, what did not fit into in
	inside bool            // once looked: see within
	looked bool
}

func (c Conn) stream() *stream { return &stream{fd: c.FD, keys: c.Keys} }

func (s *stream) close() {
	if s.near != nil {
		s.near.close()
	}
	if s.fd >= 0 {
		Close(s.fd)
		s.fd = -1
	}
}

// send queues b and sends what the socket takes.
func (s *stream) send(b []byte) error {
	if s.keys == nil {
		s.out = append(s.out, b...)
		return s.flush()
	}
	for len(b) > 0 {
		n := min(len(b), secure.MaxRecord)
		s.out, b = s.keys.Out.Seal(s.out, b[:n]), b[n:]
	}
	return s.flush()
}

// give is send for bytes that the caller keeps nothing of.
func (s *stream) give(b []byte) error {
	if s.keys != nil || len(s.out) > 0 {
		return s.send(b)
	}
	s.out = b
	return s.flush()
}

// smallPiece is how much goes in one packet, which passes wherever IPv6 does: a path that loses larger ones without a word would hold up
// a handshake, or ranks that tell each other much, for ever. MSG_EOR keeps the kernel from joining pieces, also where it sends them again.
const smallPiece = 1200

// within reports whether both ends are on this host, where no packet is lost for its size: ranks by hundreds tell each other a gigabyte.
func (s *stream) within() bool {
	if !s.looked {
		local, remote := Ends(s.fd)
		s.looked, s.inside = true, local == remote
	}
	return s.inside
}

func (s *stream) flush() error {
	if s.near != nil && len(s.out) > 0 {
		out := s.out
		s.out = nil
		return s.near.give(out)
	}
	for len(s.out) > 0 {
		piece, flags := s.out, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT
		if !s.within() {
			piece, flags = piece[:min(len(piece), smallPiece)], flags|unix.MSG_EOR
		}
		n, err := unix.SendmsgN(s.fd, piece, nil, nil, flags)
		switch {
		case err == unix.EAGAIN:
			return nil
		case err == unix.EINTR:
		case err != nil:
			return err
		default:
			s.out = s.out[n:]
		}
	}
	s.out = nil
	return nil
}

// fill reads what has arrived, until in holds most bytes. io.EOF: the other end has closed.
func (s *stream) fill(most int) (err error) {
	if s.near != nil {
		s.in, err = s.near.take(s.in, most)
		return err
	}
	if s.keys == nil {
		s.in, err = s.read(s.in, most)
		return err
	}
	for len(s.in) < most {
		if len(s.opened) == 0 {
			if whole, err := s.unseal(); !whole {
				return err
			}
		}
		n := min(len(s.opened), most-len(s.in))
		s.in, s.opened = append(s.in, s.opened[:n]...), s.opened[n:]
	}
	return nil
}

// unseal opens the next record once it is whole.
func (s *stream) unseal() (whole bool, err error) {
	s.record, err = s.read(s.record, secure.HeadSize)
	if len(s.record) < secure.HeadSize {
		return false, err
	}
	n, err := s.keys.In.Length(s.record)
	if err != nil {
		return false, err
	}
	s.record, err = s.read(s.record, secure.HeadSize+n+secure.TagSize)
	if len(s.record) < secure.HeadSize+n+secure.TagSize {
		return false, err
	}
	s.opened, err = s.keys.In.Open(s.opened[:0], s.record)
	s.record = s.record[:0]
	return err == nil, err
}

const readMost = 4 << 10 // bytes that room is made for before they are there; later as many as there are

// read appends what has arrived to b, until that has most bytes.
func (s *stream) read(b []byte, most int) ([]byte, error) {
	for len(b) < most {
		b = slices.Grow(b, min(max(readMost, len(b)), most-len(b)))
		n, _, err := unix.Recvfrom(s.fd, b[len(b):min(cap(b), most)], unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN:
			return b, nil
		case err == unix.EINTR:
		case err != nil:
			return b, err
		case n == 0:
			return b, io.EOF
		default:
			b = b[:len(b)+n]
		}
	}
	return b, nil
}

func (s *stream) pollFd() unix.PollFd {
	events := int16(unix.POLLIN)
	if len(s.out) > 0 {
		events |= unix.POLLOUT
	}
	return unix.PollFd{Fd: int32(s.fd), Events: events}
}

func sockaddr(a netip.AddrPort) (family int, sa unix.Sockaddr) {
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// connect starts a connection, from an interface where one is given. The socket becomes writable when it is made or has failed.
//
// From an interface, be it any, it has a port for itself. The kernel shares ports among connections whose other ends differ, but does not
// see that one which is bound to an interface (Pin) and one which is not are the same: it would give another program of this host the
// ports and addresses of ours, whose end at the other host that resets.
func connect(to netip.AddrPort, by *Interface) (int, error) {
	family, sa := sockaddr(to)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	opened(fd)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if by != nil && by.Segment > 0 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, by.Segment) // the other end keeps to it as well
	}
	if by != nil {
		from := by.Addr
		switch {
		case from.IsValid():
			_ = unix.BindToDevice(fd, by.Name) // see Pin
		case to.Addr().Is4():
			from = netip.IPv4Unspecified()
		default:
			from = netip.IPv6Unspecified()
		}
		_, own := sockaddr(netip.AddrPortFrom(from, 0))
		if err := unix.Bind(fd, own); err != nil && by.Addr.IsValid() { // where none is left it shares one
			Close(fd)
			return -1, err
		}
	}
	if err := unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS && err != unix.EINTR { // EINTR: it goes on
		Close(fd)
		return -1, err
	}
	return fd, nil
}

// pollFor waits until one of fds is ready, at most d.
func pollFor(fds []unix.PollFd, d time.Duration) error {
	until := time.Now().Add(d)
	for {
		_, err := unix.Poll(fds, int(max(0, (time.Until(until)+time.Millisecond-1)/time.Millisecond)))
		if err != unix.EINTR {
			return err
		}
	}
}
