package main

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Ranks that write pieces of lines at the same time are not mixed, and nothing is lost.
func TestLinesStayWhole(t *testing.T) {
	var out bytes.Buffer
	p := newPipe(&out)
	const ranks, count = 4, 200
	var all sync.WaitGroup
	for r := range ranks {
		all.Go(func() {
			l := p.lines(fmt.Sprintf("[%d] ", r))
			for k := range count {
				text := fmt.Sprintf("%d%s\n", k, strings.Repeat("x", k))
				cut := len(text) * (k % 7) / 7
				_, _ = l.Write([]byte(text[:cut]))
				_, _ = l.Write([]byte(text[cut:]))
			}
			_, _ = l.Write([]byte("last"))
			l.end()
			l.end()
		})
	}
	all.Wait()
	next := make([]int, ranks)
	for line := range strings.Lines(out.String()) {
		var r, k int
		if strings.HasSuffix(line, "] last\n") {
			continue
		}
		if _, err := fmt.Sscanf(line, "[%d] %d", &r, &k); err != nil || k != next[r] || strings.Count(line, "x") != k {
			t.Fatalf("%q, want line %d of that rank", line, next[r])
		}
		next[r]++
	}
	if strings.Count(out.String(), "] last\n") != ranks || next[0] != count {
		t.Errorf("%d of %d lines, or last lines are missing", next[0], count)
	}
}

// A line without end is passed on in pieces of bounded length.
func TestEndlessLine(t *testing.T) {
	var out bytes.Buffer
	l := newPipe(&out).lines("> ")
	for range 100 {
		_, _ = l.Write(bytes.Repeat([]byte("y"), 10_001))
	}
	l.end()
	if n := strings.Count(out.String(), "y"); n != 1_000_100 {
		t.Errorf("%d of 1000100 bytes", n)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 2*mostLine+3 || !strings.HasPrefix(line, "> y") {
			t.Fatalf("a line of %d bytes: %.20q", len(line), line)
		}
	}
}
