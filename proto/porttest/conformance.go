package porttest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"hccl.dev/hccl/device"
	"hccl.dev/hccl/proto"
)

// Fixture is a set of connected ranks, as a transport's test makes it.
type Fixture struct {
	Ports    []proto.Ports // by rank
	MaxSlice uint64        // the longest slice that the ports take, in bytes
	Poll     func()        // lets the transport work while the suite waits; may be nil
}

// limit ends a wait for something that a correct transport does at once.
const limit = 20 * time.Second

// Conformance is the suite that the ports of every transport pass. open connects n ranks and registers what it must undo with
// t.Cleanup. The suite calls it once for each part.
func Conformance(t *testing.T, open func(t *testing.T, n int) Fixture) {
	parts := []struct {
		name  string
		ranks int
		run   func(*suite)
	}{
		{"sizes", 2, (*suite).sizes},
		{"order", 2, (*suite).order},
		{"bounded", 2, (*suite).bounded},
		{"room for plans", 2, (*suite).room},
		{"stays until release", 2, (*suite).stays},
		{"multicast", 4, (*suite).multicast},
		{"slow reader of a multicast", 3, (*suite).slowReader},
		{"tags that differ", 2, (*suite).tags},
		{"one operation after the other", 2, (*suite).operations},
		{"ports are independent", 3, (*suite).independent},
	}
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) {
			f := open(t, p.ranks)
			if len(f.Ports) != p.ranks || f.MaxSlice == 0 {
				t.Fatalf("the fixture has %d ranks, wanted %d, and slices of %d bytes", len(f.Ports), p.ranks, f.MaxSlice)
			}
			p.run(&suite{T: t, Fixture: f, rng: rand.New(rand.NewPCG(3, 4))})
		})
	}
}

type suite struct {
	*testing.T
	Fixture
	rng *rand.Rand
}

var tag = proto.Tag{Lane: 0, Seq: 1, Hash: 0x1234567890abcdef}

func (s *suite) out(rank int, k proto.Kind, channel, peer int) proto.Out {
	s.Helper()
	o, err := s.Ports[rank].Out(k, channel, peer)
	if err != nil {
		s.Fatalf("rank %d: out port to rank %d: %v", rank, peer, err)
	}
	o.Begin(tag, 1)
	return o
}

func (s *suite) in(rank int, k proto.Kind, channel, peer int) proto.In {
	s.Helper()
	i, err := s.Ports[rank].In(k, channel, peer)
	if err != nil {
		s.Fatalf("rank %d: in port from rank %d: %v", rank, peer, err)
	}
	i.Begin(tag)
	return i
}

// wait tries until ok, and fails after limit.
func (s *suite) wait(what string, ok func() bool) {
	s.Helper()
	for start := time.Now(); !ok(); runtime.Gosched() {
		if s.Poll != nil {
			s.Poll()
		}
		if time.Since(start) > limit {
			s.Fatalf("%s did not come within %v", what, limit)
		}
	}
}

// pattern is byte i of slice number k on a line.
func pattern(line, k int, i uint64) byte { return byte(uint64(line)*31 + uint64(k)*17 + i*7 + i>>8) }

// tryWrite writes slice k if there is room now.
func (s *suite) tryWrite(o proto.Out, line, k int, n uint64) bool {
	s.Helper()
	p, err := o.Reserve(n, 0)
	if err != nil {
		s.Fatalf("reserve %d bytes for slice %d: %v", n, k, err)
	}
	if p == 0 {
		return false
	}
	for i, b := uint64(0), device.Bytes(p, n); i < n; i++ {
		b[i] = pattern(line, k, i)
	}
	o.Commit(n)
	return true
}

func (s *suite) write(o proto.Out, line, k int, n uint64) {
	s.Helper()
	s.wait(fmt.Sprintf("room for slice %d", k), func() bool { return s.tryWrite(o, line, k, n) })
}

// tryRead compares slice k if it is there, and releases it.
func (s *suite) tryRead(in proto.In, line, k int, want uint64) bool {
	s.Helper()
	p, n, err := in.Peek()
	if err != nil {
		s.Fatalf("slice %d: %v", k, err)
	}
	if p == 0 {
		return false
	}
	s.compare(p, n, line, k, want)
	in.Release()
	return true
}

func (s *suite) compare(p device.Ptr, n uint64, line, k int, want uint64) {
	s.Helper()
	if n != want {
		s.Fatalf("slice %d has %d bytes, wanted %d", k, n, want)
	}
	for i, b := range device.Bytes(p, n) {
		if b != pattern(line, k, uint64(i)) {
			s.Fatalf("slice %d of line %d: byte %d of %d is %d, wanted %d", k, line, i, n, b, pattern(line, k, uint64(i)))
		}
	}
}

func (s *suite) read(in proto.In, line, k int, want uint64) {
	s.Helper()
	s.wait(fmt.Sprintf("slice %d", k), func() bool { return s.tryRead(in, line, k, want) })
}
