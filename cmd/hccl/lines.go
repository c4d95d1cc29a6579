package main

import (
	"bytes"
	"io"
	"sync"
)

// pipe is where the lines of all ranks go, one at a time.
type pipe struct {
	mu  sync.Mutex
	out io.Writer // guarded by mu
}

func newPipe(out io.Writer) *pipe { return &pipe{out: out} }

// mostLine is kept of a line before it is passed on in pieces: a rank that writes without an end must not fill the memory.
const mostLine = 1 << 16

// lines passes on what one rank writes, a whole line at a time and its prefix before each.
type lines struct {
	to     *pipe
	prefix string
	kept   []byte // begins with the prefix; a line without its end
}

func (p *pipe) lines(prefix string) *lines { return &lines{to: p, prefix: prefix} }

// Write never fails: a rank is not ended because nobody reads its output.
func (l *lines) Write(b []byte) (int, error) {
	taken := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		if end == 0 {
			end = len(b)
		}
		end = min(end, mostLine)
		if len(l.kept) == 0 {
			l.kept = append(l.kept, l.prefix...)
		}
		l.kept = append(l.kept, b[:end]...)
		if l.kept[len(l.kept)-1] == '\n' {
			l.pass()
		} else if len(l.kept) >= mostLine {
			l.kept = append(l.kept, '\n')
			l.pass()
		}
		b = b[end:]
	}
	return taken, nil
}

// end passes on a last line that has no end.
func (l *lines) end() {
	if len(l.kept) > 0 {
		l.kept = append(l.kept, '\n')
		l.pass()
	}
}

func (l *lines) pass() {
	l.to.mu.Lock()
	defer l.to.mu.Unlock()
	_, _ = l.to.out.Write(l.kept)
	l.kept = l.kept[:0]
}
