package tcp

import (
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Book is where the processes of a host tell each other what they send by a network card, so that they share a bound between them.
type Book interface {
	// Post replaces what this process told of a line, and returns the sum of what all tell of it.
	Post(line uint64, mine Account) (all Account)
}

// Account is what connections send by one card.
type Account struct {
	Hungry   uint64 // those that would send more than they may
	Reserved uint64 // bytes per second of the others
	Sent     uint64 // bytes so far
}

// Rates is the book; core sets it before the first Fabric that has a bound. nil: this process shares with nobody.
var Rates Book

// How the bound of a line is kept: the kernel paces each connection, and every shapeTime the bound is divided anew among those that
// want to send. What was not sent of it, in gaps between operations, may be sent within spendTime; what was sent above it is saved.
const (
	shapeTime  = 50 * time.Millisecond
	spendTime  = 400 * time.Millisecond
	mostSpare  = 400 * time.Millisecond // of sending at the bound
	mostOwed   = 500 * time.Millisecond
	hungryPart = 0.7 // of what it may send: who sends so much would send more
	leastPart  = 1. / 16
)

// shaper bounds what this process sends by each line, a network card that is known by its address. A goroutine lives as long as there
// is a bounded connection.
type shaper struct {
	mu    sync.Mutex
	lines []*line // guarded by mu
}

// line is the connections that leave by one card.
type line struct {
	key   uint64
	rate  float64 // bytes per second that it may carry, of all processes
	pace  float64 // that each connection may
	spare float64 // bytes that may be sent above the rate, negative: they were
	sum   uint64  // bytes that all processes had sent
	gone  uint64  // bytes that connections had sent which are no more
	since time.Time
	conns []*shaped
}

type shaped struct {
	*conn
	seen uint64 // bytes that it had sent
}

var shaping shaper

// add bounds c. A connection between ranks of one host is none of a card's.
func (s *shaper) add(c *conn, rate uint64) {
	own, far := ends(c.fd)
	if rate == 0 || own == "" || own == far {
		return
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(own))
	key := h.Sum64()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := slices.IndexFunc(s.lines, func(l *line) bool { return l.key == key })
	if k < 0 {
		if k = len(s.lines); k == 0 {
			go s.run()
		}
		s.lines = append(s.lines, &line{key: key, pace: float64(rate), since: time.Now()})
	}
	l := s.lines[k]
	l.rate = float64(rate)
	l.conns = append(l.conns, &shaped{conn: c})
	c.bound(l.pace)
}

// remove is called before c's descriptor is closed.
func (s *shaper) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		l.conns = slices.DeleteFunc(l.conns, func(o *shaped) bool {
			if o.conn == c {
				l.gone += c.sent.Load()
			}
			return o.conn == c
		})
	}
}

func (s *shaper) run() {
	tick := time.NewTicker(shapeTime)
	defer tick.Stop()
	for now := range tick.C {
		if !s.turn(now) {
			return
		}
	}
}

// turn divides each line's bound anew and reports whether there is any line.
func (s *shaper) turn(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		l.divide(now)
	}
	s.lines = slices.DeleteFunc(s.lines, func(l *line) bool { return len(l.conns) == 0 })
	return len(s.lines) > 0
}

func (l *line) divide(now time.Time) {
	past := now.Sub(l.since).Seconds()
	if past <= 0 {
		return
	}
	l.since = now
	all := l.post(past)
	if sent := all.Sent - l.sum; all.Sent >= l.sum { // less where a process has ended
		l.spare += l.rate*past - float64(sent)
	}
	l.sum = all.Sent
	l.spare = max(-l.rate*mostOwed.Seconds(), min(l.spare, l.rate*mostSpare.Seconds()))
	free := l.rate + l.spare/spendTime.Seconds() - float64(all.Reserved)
	l.pace = max(free, l.rate*leastPart) / float64(max(all.Hungry, 1))
	for _, c := range l.conns {
		c.bound(l.pace)
	}
}

// post tells what this process sent in the past seconds.
func (l *line) post(past float64) Account {
	mine := Account{Sent: l.gone}
	for _, c := range l.conns {
		sent := c.sent.Load()
		used := float64(sent - c.seen)
		if c.blocked.Load() || used >= hungryPart*l.pace*past {
			mine.Hungry++
		} else {
			mine.Reserved += uint64(used / past)
		}
		c.seen = sent
		mine.Sent += sent
	}
	if Rates == nil {
		return mine
	}
	return Rates.Post(l.key, mine)
}

// bound lets the kernel send at most so many bytes per second.
func (c *conn) bound(rate float64) {
	_ = unix.SetsockoptUint64(c.fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, uint64(rate))
}

// ends are the addresses of a socket of the internet, as text of bytes.
func ends(fd int) (own, far string) {
	l, _ := unix.Getsockname(fd)
	r, _ := unix.Getpeername(fd)
	return ipBytes(l), ipBytes(r)
}

func ipBytes(sa unix.Sockaddr) string {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return string(sa.Addr[:])
	case *unix.SockaddrInet6:
		return string(sa.Addr[:])
	}
	return ""
}
