package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// hub joins processes that share no memory: a star of TCP connections with rank 0 in the middle. It carries the unique id and what
// the ranks found, a few KiB between measurements, and nothing while one is timed. All messages have the same length on both sides.
//
//	rank 0 listens; each other process connects
//	rank 0 -> other   32 bytes: hash of the job's key, so that a stranger's port is left alone
//	other -> rank 0   32 bytes: another hash of it, rank, number of processes
//	then, again and again: each sends its share, rank 0 sends all shares back
type hub struct {
	rank, size int
	conns      []net.Conn // rank 0: by rank, its own nil; others: the one to rank 0
}

func secretOf(key, role string) [32]byte {
	return sha256.Sum256([]byte("hccl perf\x00" + role + "\x00" + key))
}

const (
	helloSize  = 40
	greetLimit = 500 * time.Millisecond // for a listener to say who it is, before the next is tried
)

// gather is rank 0's part in meeting, with at least one other: it accepts until all have come or the limit is over.
func gather(l *net.TCPListener, size int, key string, limit time.Time) (*hub, error) {
	h := &hub{size: size, conns: make([]net.Conn, size)}
	if err := l.SetDeadline(limit); err != nil {
		return nil, err
	}
	var mu sync.Mutex // guards h.conns and left
	left := size - 1
	full := make(chan struct{})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // one that says nothing holds up nobody
				rank, ok := admit(c, size, key)
				mu.Lock()
				defer mu.Unlock()
				if !ok || h.conns[rank] != nil || left == 0 {
					_ = c.Close()
					return
				}
				h.conns[rank] = c
				if left--; left == 0 {
					close(full)
				}
			}()
		}
	}()
	defer func() { _ = l.Close() }()
	select {
	case <-full:
		return h, nil
	case <-time.After(time.Until(limit)):
	}
	mu.Lock()
	defer mu.Unlock()
	return nil, fmt.Errorf("%s did not come to rank 0 at %s in time (HCCL_INIT_TIMEOUT)", absent(h.conns), l.Addr())
}

func absent(conns []net.Conn) string {
	var ranks []int
	for r, c := range conns {
		if r > 0 && c == nil {
			ranks = append(ranks, r)
		}
	}
	return "processes " + fmt.Sprint(ranks)
}

// admit says which rank came, if it belongs to this job.
func admit(c net.Conn, size int, key string) (rank int, ok bool) {
	mine, theirs := secretOf(key, "greeting"), secretOf(key, "hello")
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	hello := make([]byte, helloSize)
	if _, err := c.Write(mine[:]); err != nil {
		return 0, false
	}
	if _, err := io.ReadFull(c, hello); err != nil || !bytes.Equal(hello[:32], theirs[:]) {
		return 0, false
	}
	rank = int(binary.BigEndian.Uint32(hello[32:]))
	_ = c.SetDeadline(time.Time{})
	return rank, int(binary.BigEndian.Uint32(hello[36:])) == size && rank > 0 && rank < size
}

// errStranger is the answer of a listener that is not this job's rank 0.
var errStranger = errors.New("somebody else listens there")

// attend is the part of the others.
func attend(addr string, rank, size int, key string) (*hub, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	theirs, mine := secretOf(key, "greeting"), secretOf(key, "hello")
	greeting := make([]byte, len(theirs))
	_ = c.SetDeadline(time.Now().Add(greetLimit))
	if _, err := io.ReadFull(c, greeting); err != nil || !bytes.Equal(greeting, theirs[:]) {
		_ = c.Close()
		return nil, errStranger
	}
	_ = c.SetDeadline(time.Time{})
	hello := binary.BigEndian.AppendUint32(mine[:], uint32(rank))
	if _, err := c.Write(binary.BigEndian.AppendUint32(hello, uint32(size))); err != nil {
		_ = c.Close()
		return nil, err
	}
	return &hub{rank: rank, size: size, conns: []net.Conn{c}}, nil
}

// share gives all processes the unique id of rank 0 and what every rank found; per is the number of ranks of a process.
func (h *hub) share(p *page, per int) error {
	own := p.share(h.rank*per, per)
	every := p.share(0, h.size*per)
	if h.rank > 0 {
		if _, err := h.conns[0].Write(own); err != nil {
			return errors.New("rank 0 is gone")
		}
		if _, err := io.ReadFull(h.conns[0], p.id[:]); err != nil {
			return errors.New("rank 0 is gone")
		}
		if _, err := io.ReadFull(h.conns[0], every); err != nil {
			return errors.New("rank 0 is gone")
		}
		return nil
	}
	for r := 1; r < h.size; r++ {
		if _, err := io.ReadFull(h.conns[r], p.share(r*per, per)); err != nil {
			return fmt.Errorf("the process of rank %d is gone", r*per)
		}
	}
	answer := append(p.id[:], every...)
	for r := 1; r < h.size; r++ {
		if _, err := h.conns[r].Write(answer); err != nil {
			return fmt.Errorf("the process of rank %d is gone", r*per)
		}
	}
	return nil
}
