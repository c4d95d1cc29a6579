package cases

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var garbage = flag.Int64("garbage", 3000, "how many connections with garbage a job gets while it goes on")

// C22: every port where a job listens is flooded with garbage while it sums and makes communicators: nothing fails, and nothing is left.
func TestGarbage(t *testing.T) {
	binary := build(t, "case_garbage")
	ctx, cancel := context.WithTimeout(t.Context(), limit())
	defer cancel()
	cmd := command(ctx, append([]string{"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=NET"}, tcp.env...), binary, fmt.Sprint(limit().Seconds()-10))
	var said bytes.Buffer
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	lines := bufio.NewScanner(io.TeeReader(r, &said))
	until := func(line string) {
		for lines.Scan() && lines.Text() != line {
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- cmd.Wait()
		w.Close()
	}()
	until("ready")
	at := ports("case_garbage")
	slices.Sort(at)
	at = slices.Compact(at)
	began := time.Now()
	thrown := throw(at, *garbage/10) // as much memory as it takes, it has then
	fmt.Fprint(in, "m")
	until("noted")
	thrown += throw(at, *garbage-*garbage/10)
	took := time.Since(began).Seconds()
	in.Close()
	until("")
	if err := <-done; err != nil {
		t.Errorf("%v\n%s", err, said.Bytes())
	}
	away := turnedAway(said.String())
	t.Logf("%d connections with garbage at %d ports in %.0f s, %.0f a second; %d were turned away", thrown, len(at), took,
		float64(thrown)/took, away)
	for line := range strings.Lines(said.String()) {
		if strings.HasPrefix(line, "rank ") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if len(at) != 5 {
		t.Errorf("garbage was thrown at %d ports, and 4 ranks and the maker of ids listen", len(at))
	}
	if thrown < *garbage*9/10 || away < thrown*9/10 {
		t.Errorf("of %d connections %d were made, and %d count as turned away", *garbage, thrown, away)
	}
}

var strangersSaid = regexp.MustCompile(`(?m)^(\S+) HCCL INFO strangers: (\d+) connections`)

// turnedAway is how many strangers all processes have counted, by what each says last.
func turnedAway(said string) (n int64) {
	last := map[string]int64{}
	for _, m := range strangersSaid.FindAllStringSubmatch(said, -1) {
		last[m[1]], _ = strconv.ParseInt(m[2], 10, 64)
	}
	for _, k := range last {
		n += k
	}
	return n
}

// throw has so many strangers come to each port in turn, and returns how many were let in.
func throw(ports []string, n int64) int64 {
	var begun, thrown atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var held [8]net.Conn
			for k := begun.Add(1); k <= n; k = begun.Add(1) {
				c, err := net.DialTimeout("tcp", net.JoinHostPort("localhost", ports[k%int64(len(ports))]), 5*time.Second)
				if err != nil {
					continue
				}
				thrown.Add(1)
				_ = c.(*net.TCPConn).SetLinger(0) // so that no port here stays taken
				if litter(c) {
					c, held[k%8] = held[k%8], c
				}
				if c != nil {
					_ = c.Close()
				}
			}
			for _, c := range held {
				if c != nil {
					_ = c.Close()
				}
			}
		})
	}
	all.Wait()
	return thrown.Load()
}

// litter says something that no protocol allows, and reports whether it is to be left open for a while.
func litter(c net.Conn) (stay bool) {
	b := make([]byte, 1+rand.IntN(1<<rand.IntN(13)))
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	switch rand.IntN(8) {
	case 0: // a request of HTTP
		b = fmt.Appendf(b[:0], "POST /%d HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", rand.Uint64())
	case 1: // its own greeting, with what is random behind it
		head := make([]byte, 32)
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, _ := c.Read(head)
		b = append(head[:n], b...)
	case 2: // a handshake of TLS
		b = append([]byte{22, 3, 1, byte(len(b) >> 8), byte(len(b)), 1}, b...)
	case 3:
		stay = true
	}
	_, _ = c.Write(b)
	return stay
}
