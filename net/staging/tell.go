package staging

import (
	"fmt"
	"strings"

	"hccl.dev/hccl/internal/log"
)

// Stats is what the pool holds, in bytes, and what it has done since the process began.
type Stats struct {
	Bytes, Most uint64
	Out         int    // buffers that are in use
	Plain       uint64 // buffers that were made for one use, because the pool was at its cap
	PlainBytes  int64  // in those that are in use
	Comforts    string // what its memory has: "locked in memory, on huge pages"
}

// Stats looks at the pool. What other threads do meanwhile may be in it or not.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Bytes: p.bytes, Most: p.opts.filled().Most, Plain: p.plains.Load(), PlainBytes: p.beyond.Load()}
	for k := range p.chunks {
		if c := p.chunks[k].Load(); c != nil {
			s.Out += int(uint32(c.use.Load()))
		}
	}
	s.Comforts = p.has()
	return s
}

// has lists the comforts that are asked for and were not refused. mu is held.
func (p *Pool) has() string {
	asked := [...]bool{locked: !p.opts.NoLock, huge: !p.opts.NoHuge, placed: p.wanted == 1}
	var list []string
	for k, name := range comforts {
		if asked[k] && p.refused[k] == "" {
			list = append(list, name)
		}
	}
	return strings.Join(list, ", ")
}

func (s Stats) String() string {
	text := fmt.Sprintf("%d KiB of at most %d MiB", s.Bytes>>10, s.Most>>20)
	if s.Plain > 0 {
		text += fmt.Sprintf(", %d slices in memory of their own, for it was full", s.Plain)
	}
	return text
}

// tellGrown says at TRACE that there is a chunk more, and at INFO when the pool is beyond its initial size, each time that it has
// doubled. mu is held.
func (p *Pool) tellGrown() {
	log.Trace(log.Net, "staging grows to %d KiB of at most %d", p.bytes>>10, p.opts.Most>>10)
	if p.bytes > p.opts.Initial && p.bytes >= 2*p.told {
		p.told = p.bytes
		log.Info(log.Net, "staging grows to %d MiB of at most %d (HCCL_STAGING_MAX): no free buffer of a size was left", p.bytes>>20,
			p.opts.Most>>20)
	}
}

func (p *Pool) tellShrunk(before uint64) {
	p.told = p.bytes / 2
	log.Info(log.Net, "staging shrinks from %d KiB to %d: nobody wanted the rest", before>>10, p.bytes>>10)
}

func (p *Pool) tellCut(c *chunk, class uint8) {
	log.Trace(log.Net, "staging cuts %d KiB anew: buffers of %d KiB are free, and of %d KiB none is left at the cap", len(c.mem)>>10,
		p.sizes.sizes[c.class]>>10, p.sizes.sizes[class]>>10)
}

// tellPlain is told of each plain buffer; it speaks of the 1st, 10th, 100th and so on.
func (p *Pool) tellPlain(n uint64) {
	for n%10 == 0 {
		n /= 10
	}
	if n == 1 {
		log.Info(log.Net, "staging is at its cap of %d MiB (HCCL_STAGING_MAX): slices that cannot wait take memory of their own, %d so far",
			p.opts.Most>>20, p.plains.Load())
	}
}
