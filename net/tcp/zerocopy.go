package tcp

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/net/staging"
)

const (
	zeroAuto  = -1           // a threshold that adapts:
	zeroFrom  = 64 << 10     // so many bytes to begin with,
	zeroNever = 2 * MaxSlice // and this where it does not pay
	zeroTry   = 8            // sends that the kernel copied all the same, after which it does not
	zeroPins  = 64           // sends without a copy that the kernel may have under way on a socket; further ones are copied
)

// zeroCopy sends slices straight from their staging (MSG_ZEROCOPY): the kernel reads the memory until the peer's host has it, and says
// so in the socket's error queue. Until then the buffer has one owner more.
//
//	sendmsg ──> pins[id], an owner ──┬──> the queue names id ──> Put
//	                                 └──> the socket is closed first ──> Forsake, Put: the buffer gets other pages
//
// It is guarded by the link's tx baton.
type zeroCopy struct {
	from    int  // bytes of a slice from which on it is not copied
	adapts  bool // from follows what the kernel does
	next    uint32
	out     int // pins that are set
	copied  int // sends that the kernel copied all the same, without one in between that it did not
	pins    [zeroPins]*staging.Buf
	control [128]byte
}

// newZeroCopy prepares a socket for a threshold: zeroAuto, or so many bytes. nil: the socket cannot, or is not to.
func newZeroCopy(fd, from int) *zeroCopy {
	if from == 0 || unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ZEROCOPY, 1) != nil {
		return nil
	}
	if from == zeroAuto {
		return &zeroCopy{from: zeroFrom, adapts: true}
	}
	return &zeroCopy{from: from}
}

// write sends what the socket takes of the batch, up to where the next piece goes another way.
func (c *conn) write() (int, unix.Errno) {
	s, z := &c.send, c.zero
	switch {
	case c.seal != nil:
		return c.seal.send(c.fd, s.iov[s.first:s.count])
	case z == nil:
		return sendmsg(c.fd, s.iov[s.first:s.count], 0)
	}
	end := s.first
	for end < s.count && !z.takes(s, end) {
		end++
	}
	switch {
	case end == s.count:
		return sendmsg(c.fd, s.iov[s.first:end], 0)
	case end > s.first: // headers are written anew for the next batch: they are copied
		return sendmsg(c.fd, s.iov[s.first:end], unix.MSG_MORE)
	}
	n, e := sendmsg(c.fd, s.iov[end:end+1], unix.MSG_ZEROCOPY)
	switch e {
	case 0:
		z.pin(s.owner[end])
		c.direct.Store(c.direct.Load() + uint64(n))
	case unix.ENOBUFS: // the user may not pin more memory
		z.raise(c, min(2*z.from, zeroNever), "the kernel lets the user pin no more memory (RLIMIT_MEMLOCK, net.core.optmem_max)")
		return sendmsg(c.fd, s.iov[end:end+1], 0)
	}
	return n, e
}

// takes reports whether a piece goes without a copy.
func (z *zeroCopy) takes(s *sender, piece int) bool {
	return s.owner[piece] != nil && s.iov[piece].Len >= uint64(z.from) && z.pins[z.next%zeroPins] == nil
}

// pin keeps b for the send that has just been made: the kernel numbers them.
func (z *zeroCopy) pin(b *staging.Buf) {
	b.Share(1)
	z.pins[z.next%zeroPins] = b
	z.next++
	z.out++
}

// unpin puts what the kernel has done with.
func (c *conn) unpin() {
	z := c.zero
	for z.out > 0 {
		n, e := recvError(c.fd, z.control[:])
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return
		}
		first, last, copied, ok := zeroDone(z.control[:n])
		if !ok {
			continue
		}
		for id := first; id-first <= last-first && id-first < zeroPins; id++ {
			z.put(id)
		}
		z.judge(c, copied)
	}
}

func (z *zeroCopy) put(id uint32) {
	if at := &z.pins[id%zeroPins]; *at != nil {
		(*at).Put()
		*at = nil
		z.out--
	}
}

// judge learns whether the last sends were copied all the same, as on paths within a host.
func (z *zeroCopy) judge(c *conn, copied bool) {
	if !copied {
		z.copied = 0
		return
	}
	if z.copied++; z.copied == zeroTry {
		z.raise(c, zeroNever, "the kernel copies them all the same")
	}
}

// raise sets the threshold where it adapts. The first connection of a process says so at INFO, each at TRACE.
func (z *zeroCopy) raise(c *conn, from int, why string) {
	if !z.adapts || z.from == zeroNever {
		return
	}
	z.from = from
	what := "all slices"
	if from < zeroNever {
		what = fmt.Sprintf("slices of less than %d KiB", from>>10)
	}
	log.InfoOnce(log.Net, why, "connections such as this rail %d send %s with a copy: %s", c.rail%MaxPaths, what, why)
	log.Trace(log.Net, "rail %d of %d sends %s with a copy: %s", c.rail, c.number, what, why)
}

// forsake gives up the buffers of a socket that is being closed. What the kernel still has to send goes on.
func (z *zeroCopy) forsake() {
	for k, b := range z.pins {
		if b != nil {
			b.Forsake()
			b.Put()
			z.pins[k] = nil
		}
	}
	z.out = 0
}

// The kernel's message in the error queue: struct cmsghdr, then struct sock_extended_err of linux/errqueue.h.
const (
	cmsgData       = 16 // after length, level and type
	originZero     = 5  // SO_EE_ORIGIN_ZEROCOPY
	codeZeroCopied = 1  // SO_EE_CODE_ZEROCOPY_COPIED
)

// zeroDone reads which sends are done, and whether they were copied after all.
func zeroDone(b []byte) (first, last uint32, copied, ok bool) {
	if len(b) < cmsgData+16 || b[cmsgData+4] != originZero || binary.NativeEndian.Uint32(b[cmsgData:]) != 0 {
		return 0, 0, false, false
	}
	e := b[cmsgData:]
	return binary.NativeEndian.Uint32(e[8:]), binary.NativeEndian.Uint32(e[12:]), e[6]&codeZeroCopied != 0, true
}
