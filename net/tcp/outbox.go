package tcp

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
)

// maxQueued bounds the control messages of an outbox.
const maxQueued = 256 << 10

// outbox is the control messages to whoever they are for, whole and in order, until they have been heard.
type outbox struct {
	mu     sync.Mutex
	queued []byte      // guarded by mu
	first  uint64      // number of the first of them; guarded by mu
	count  int         // how many; guarded by mu
	put    int         // bytes of queued that the lead has taken; guarded by mu
	news   atomic.Bool // put < len(queued): spares the sender of slices the mutex; written under mu
}

// queue numbers a message and adds it. It returns what is wrong, "" if nothing is.
func (o *outbox) queue(h header, b []byte) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queued)+headerSize+len(b) > maxQueued {
		return fmt.Sprintf("%d bytes of control messages wait for it", len(o.queued))
	}
	var head [headerSize]byte
	h.seq = o.first + uint64(o.count)
	h.encode(head[:])
	o.queued = append(append(o.queued, head[:]...), b...)
	o.count++
	o.news.Store(true)
	return ""
}

// takeQueued appends the frames that the lead has not taken to b, until it has about most bytes.
func (o *outbox) takeQueued(b []byte, most int) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.put < len(o.queued) && len(b) < most {
		n := frameBytes(o.queued[o.put:])
		b = append(b, o.queued[o.put:o.put+n]...)
		o.put += n
	}
	o.news.Store(o.put < len(o.queued))
	return b
}

// said reports whether a lead has taken all messages.
func (o *outbox) said() bool { return !o.news.Load() }

// forget frees the messages before number n, which have been heard. It returns what is wrong with n.
func (o *outbox) forget(n uint64) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n > o.first+uint64(o.count) {
		return fmt.Sprintf("%d control messages heard, with %d sent", n, o.first+uint64(o.count))
	}
	at := 0
	for ; o.first < n; o.first++ {
		at += frameBytes(o.queued[at:])
		o.count--
	}
	o.queued = append(o.queued[:0], o.queued[at:]...)
	o.put = max(o.put-at, 0)
	return ""
}

// unqueue drops all messages. Those that no rail has taken leave no gap in the numbers.
func (o *outbox) unqueue() {
	o.mu.Lock()
	for at := 0; at < o.put; o.first++ {
		at += frameBytes(o.queued[at:])
	}
	o.queued, o.count, o.put = o.queued[:0], 0, 0
	o.news.Store(false)
	o.mu.Unlock()
}

// recall has the next lead send everything that has not been heard.
func (o *outbox) recall() {
	o.mu.Lock()
	o.put = 0
	o.news.Store(len(o.queued) > 0)
	o.mu.Unlock()
}

// frameBytes is the length of the control frame at the front of b.
func frameBytes(b []byte) int { return headerSize + int(binary.LittleEndian.Uint32(b[8:])) }
