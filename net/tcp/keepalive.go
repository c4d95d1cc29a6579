package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

// Nothing tells that the path of a rail is gone while nothing goes by it. So the tender has the other host asked now and then, where
// there is another rail to go by:
//
//	quiet ── Options.Keepalive, then twice as long each time ──> asked ── an answer ──> quiet
//	                                                               └──── 4 round trips without one ──> stands still (tend.go)
//
// It is TCP's own keepalive, an empty segment that the other kernel answers: no thread is woken at either end, nothing counts as use, and
// a process that is stopped answers too. The kernel's timer runs only until the answer.
const (
	leastQuiet = time.Second      // what the kernel can tell
	mostQuiet  = 30 * time.Second // to which pauses grow
	unasked    = 2 * time.Second  // whoever has not asked by then knows no keepalive
	mostAsked  = 64               // links in one turn of the tender: a thousand that fall idle together are asked one after the other
)

// asking is what the tender knows of a rail that nothing goes by.
type asking struct {
	moved uint64        // bytes that had gone either way
	quiet time.Time     // since when nothing more has
	pause time.Duration // from the last question to the next
	next  time.Time     // when to ask
	asked time.Time     // when the other host was; zero: it has answered
}

// inquire asks over all rails that are quiet once that is due for one: so the answer of one shows that the others miss theirs. It
// reports whether it has.
func (l *Link) inquire(now time.Time, every time.Duration) bool {
	var room [MaxRails]*conn
	quiet, rails, due := room[:0], 0, false
	for k := range l.rails {
		c := l.rails[k].Load()
		if c == nil || c.state.Load() > railSuspect {
			continue
		}
		rails++
		q := &c.asking
		if moved := c.sent.Load() + c.got.Load(); moved != q.moved || q.quiet.IsZero() {
			q.moved, q.quiet, q.pause, q.next = moved, now, every, now.Add(every)
		}
		due = due || !now.Before(q.next)
		if q.asked.IsZero() && now.Sub(q.quiet) >= leastQuiet {
			quiet = append(quiet, c)
		}
	}
	if rails < 2 || !due || !l.Used() {
		return false
	}
	for _, c := range quiet {
		q := &c.asking
		q.asked, q.pause = now, min(2*q.pause, max(mostQuiet, every))
		q.next = now.Add(q.pause)
		l.net.ask(c)
	}
	return len(quiet) > 0
}

// ask has the kernel ask at once, as nothing has come for as long as TCP_KEEPIDLE says, and every second until there is an answer.
func (n *Net) ask(c *conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.closed {
		return
	}
	_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1)
	_ = unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 1) // last: this looks at how long ago something came
}

// silent reports whether the other host was asked, and has not answered. Net.mu is held.
func (c *conn) silent(info *unix.TCPInfo, now time.Time) bool {
	q := &c.asking
	if q.asked.IsZero() {
		return false
	}
	waited := now.Sub(q.asked)
	heard := time.Duration(info.Last_ack_recv)*time.Millisecond < waited
	if heard || info.Probes == 0 && waited > unasked {
		if q.asked = (time.Time{}); heard {
			c.pulse.last = now
		}
		_ = unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
		return false
	}
	return info.Probes > 0 && waited > 4*time.Duration(info.Rtt)*time.Microsecond
}
