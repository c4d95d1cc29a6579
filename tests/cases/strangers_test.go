package cases

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func as(user uint32) *syscall.Credential { return &syscall.Credential{Uid: user, Gid: user} }

// stranger knows nothing of the library: it finds ports and does to them what scanners, monitors and misdirected clients do.
type stranger struct {
	done   chan struct{}
	over   sync.WaitGroup
	knocks atomic.Int64
	kept   []net.Conn // held open until the end
}

// knock starts a stranger that goes on until stop.
func knock(t *testing.T) *stranger {
	s := &stranger{done: make(chan struct{})}
	s.over.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for k := 0; ; k++ {
			select {
			case <-s.done:
				return
			case <-tick.C:
				for _, port := range ports("case_start") {
					s.visit(k, port)
					k++
				}
			}
		}
	})
	t.Cleanup(func() { s.stop() })
	return s
}

// stop ends the stranger and tells how often it was let in.
func (s *stranger) stop() int64 {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.over.Wait()
	for _, c := range s.kept {
		_ = c.Close()
	}
	s.kept = nil
	return s.knocks.Load()
}

func (s *stranger) visit(k int, port string) {
	c, err := net.DialTimeout("tcp", net.JoinHostPort("localhost", port), 100*time.Millisecond)
	if err != nil {
		return // the rank has gone meanwhile
	}
	s.knocks.Add(1)
	switch k % 6 {
	case 0:
	case 1:
		_ = c.(*net.TCPConn).SetLinger(0) // closing resets
	case 2:
		s.say(c, 3)
	case 3:
		s.say(c, 4096)
	case 4:
		_, _ = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	case 5: // says nothing, or the beginning of whatever greeting it gets, and stays
		head := make([]byte, 8)
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		n, _ := c.Read(head)
		_, _ = c.Write(head[:n])
		if len(s.kept) < 50 {
			s.kept = append(s.kept, c)
			return
		}
	}
	_ = c.Close()
}

func (s *stranger) say(c net.Conn, n int) {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	_, _ = c.Write(b)
}

// ports lists where the processes of a program listen now.
func ports(program string) (found []string) {
	ours := map[string]bool{}
	names, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range names {
		if to, err := os.Readlink(exe); err != nil || to != filepath.Join(bin, program) {
			continue
		}
		fds, _ := filepath.Glob(filepath.Dir(exe) + "/fd/*")
		for _, fd := range fds {
			to, _ := os.Readlink(fd)
			if inode, ok := strings.CutPrefix(to, "socket:["); ok {
				ours[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		found = append(found, listening(table, ours)...)
	}
	return found
}

// listening reads a table of the kernel: column 1 is the local address, 3 the state (0A: listens), 9 the inode.
func listening(table string, inodes map[string]bool) (found []string) {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		col := strings.Fields(lines.Text())
		if len(col) < 10 || col[3] != "0A" || !inodes[col[9]] {
			continue
		}
		hex := col[1][strings.LastIndex(col[1], ":")+1:]
		if port, err := strconv.ParseUint(hex, 16, 16); err == nil {
			found = append(found, strconv.FormatUint(port, 10))
		}
	}
	return found
}
