package tcp

import (
	"io"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/secure"
)

// unsealing is what a connection receives. It is guarded by the fabric's rx baton. nil: it receives in clear.
type unsealing struct {
	by    *secure.Direction
	buf   []byte
	r, w  int    // buf[r:w] was read and is not opened
	spare []byte // for a record that does not fit where it is wanted
	left  []byte // what is in spare and was not handed out
	end   error  // why nothing follows what was handed out
}

func newUnsealing(keys *secure.Session) *unsealing {
	if keys == nil {
		return nil
	}
	return &unsealing{by: keys.In, buf: make([]byte, sealRoom), spare: make([]byte, 0, secure.MaxRecord)}
}

// recv fills iov, which has room bytes, with what has arrived. drained: the socket has nothing more, and neither has u. An error is
// unix.EAGAIN, io.EOF, secure.ErrForged or another one of the socket.
func (u *unsealing) recv(fd int, iov []unix.Iovec, room int) (n int, drained bool, err error) {
	if u == nil {
		return recvPlain(fd, iov, room)
	}
	for u.end == nil {
		n += u.open(iov, n)
		if n == room || n > 0 && drained || u.end != nil {
			break
		}
		switch k, e := recv(fd, u.space()); {
		case e == unix.EAGAIN && n == 0:
			return 0, true, unix.EAGAIN
		case e == unix.EAGAIN:
			return n, true, nil
		case e == unix.EINTR:
		case e != 0:
			u.end = e
		case k == 0 && u.w > 0:
			u.end = io.ErrUnexpectedEOF
		case k == 0:
			u.end = io.EOF
		default:
			u.w += k
			drained = u.w < len(u.buf)
		}
	}
	if n == 0 {
		return 0, false, u.end
	}
	return n, drained && n < room && u.end == nil, nil
}

func recvPlain(fd int, iov []unix.Iovec, room int) (n int, drained bool, err error) {
	n, e := recvmsg(fd, iov)
	switch {
	case e != 0:
		return 0, false, e
	case n == 0:
		return 0, false, io.EOF
	}
	return n, n < room, nil
}

// space is where to read more: all of the buffer that is not taken by the beginning of a record.
func (u *unsealing) space() []byte {
	copy(u.buf, u.buf[u.r:u.w])
	u.r, u.w = 0, u.w-u.r
	return u.buf[u.w:]
}

// open hands out what whole records hold, behind the first at bytes of iov, and returns how much that is.
func (u *unsealing) open(iov []unix.Iovec, at int) (n int) {
	for i := range iov {
		room := bytesOf(&iov[i])
		if at >= len(room) {
			at -= len(room)
			continue
		}
		for room, at = room[at:], 0; len(room) > 0; {
			k := u.some(room)
			if k == 0 {
				return n
			}
			room, n = room[k:], n+k
		}
	}
	return n
}

// some fills room with some bytes and returns how many, 0 where no record is whole. One that fits is opened right there.
func (u *unsealing) some(room []byte) (n int) {
	if len(u.left) == 0 {
		record := u.record()
		if record == nil {
			return 0
		}
		fits := len(record)-secure.HeadSize-secure.TagSize <= len(room)
		into := u.spare
		if fits {
			into = room[:0]
		}
		got, err := u.by.Open(into, record)
		if err != nil {
			u.end = err
			return 0
		}
		if fits {
			return len(got)
		}
		u.left = got
	}
	n = copy(room, u.left)
	u.left = u.left[n:]
	return n
}

// record takes the next record off the buffer, nil while it is not whole.
func (u *unsealing) record() []byte {
	b := u.buf[u.r:u.w]
	if len(b) < secure.HeadSize {
		return nil
	}
	n, err := u.by.Length(b)
	if err != nil {
		u.end = err
		return nil
	}
	if n += secure.HeadSize + secure.TagSize; len(b) < n {
		return nil
	}
	u.r += n
	return b[:n]
}
