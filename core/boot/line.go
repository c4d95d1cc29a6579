package boot

import (
	"time"

	"golang.org/x/sys/unix"
)

// Line is a connection for few words, which can be looked at before they are taken.
type Line struct{ s *stream }

// Line makes one of a connection, which belongs to it from here on.
func (c Conn) Line() *Line { return &Line{c.stream()} }

// Say sends b. A connection with so little on it has room; whether the other end is there is noticed where its words are missed.
func (l *Line) Say(b []byte) { _ = l.s.send(b) }

// Heard is what has come and was not taken yet, up to most bytes. An error says that nothing is there and nothing will come.
func (l *Line) Heard(most int) ([]byte, error) {
	err := l.s.fill(most)
	if len(l.s.in) > 0 {
		return l.s.in[:min(most, len(l.s.in))], nil
	}
	return nil, err
}

// Take forgets the first n bytes that were heard.
func (l *Line) Take(n int) { l.s.in = l.s.in[n:] }

// Wait returns when something may have come, or after d.
func (l *Line) Wait(d time.Duration) { _ = pollFor([]unix.PollFd{l.s.pollFd()}, d) }

// Close ends the connection.
func (l *Line) Close() { l.s.close() }
