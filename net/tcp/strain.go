package tcp

import (
	"time"

	"golang.org/x/sys/unix"
)

// Strain is how much a path has carried while the network alone held it back. Both only grow.
type Strain struct {
	Time  time.Duration
	Bytes uint64 // that the peer's host took within that time
}

// Rate is in bytes per second.
func (s Strain) Rate() float64 {
	if s.Time <= 0 {
		return 0
	}
	return float64(s.Bytes) / s.Time.Seconds()
}

// Less is what came after another one.
func (s Strain) Less(o Strain) Strain { return Strain{s.Time - o.Time, s.Bytes - o.Bytes} }

const (
	loadTime  = 50 * time.Millisecond // for a look that means something: the kernel counts in ticks of its clock
	heldShare = 0.85                  // of the time between two looks
)

// load is what a socket has done since the look before.
type load struct {
	at      time.Time
	held    uint64        // microseconds in which there was something to send, and neither the reader nor the socket's buffer was in its way
	acked   uint64        // bytes
	pressed bool          // by the look at that time: so it was all the time, and there is more
	past    time.Duration // between the last two looks
	gained  uint64        // bytes within
}

// look takes note of what the kernel counts. Where the processor is what is slow the socket has sent all that it was given, or the kernel
// waits for the process, and counts that; and a bound that was set is no fault of the network.
func (d *load) look(info *unix.TCPInfo, now time.Time) {
	past := now.Sub(d.at)
	if past < loadTime {
		return
	}
	held := info.Busy_time - min(info.Busy_time, info.Rwnd_limited+info.Sndbuf_limited)
	gained := info.Bytes_acked - d.acked
	if d.at.IsZero() {
		gained = 0
	}
	busy := time.Duration(held-min(held, d.held)) * time.Microsecond
	bounded := float64(gained) >= hungryPart*float64(info.Max_pacing_rate)*past.Seconds()
	d.pressed = !d.at.IsZero() && info.Notsent_bytes > 0 && busy.Seconds() >= heldShare*past.Seconds() && !bounded
	d.at, d.held, d.acked, d.past, d.gained = now, held, info.Bytes_acked, past, gained
}

// rest takes note that there was nothing to send.
func (d *load) rest(now time.Time) { d.at, d.pressed, d.past, d.gained = now, false, 0, 0 }

// strain adds up what was seen now: a path is held back where half of its rails are.
func (l *Link) strain(now time.Time) {
	var rails, pressed [MaxPaths]int
	var since [MaxPaths]Strain
	l.each(func(c *conn) {
		k, d := c.rail%MaxPaths, &c.pulse.load
		rails[k]++
		if !d.at.Equal(now) {
			return
		}
		since[k].Bytes += d.gained
		if d.pressed {
			pressed[k]++
			since[k].Time = max(since[k].Time, d.past)
		}
	})
	for k := range rails {
		if pressed[k] > 0 && 2*pressed[k] >= rails[k] {
			l.strains[k].Time += since[k].Time
			l.strains[k].Bytes += since[k].Bytes
		}
	}
}

// Strain is that of a path so far.
func (l *Link) Strain(path int) Strain {
	l.net.tending.Lock()
	defer l.net.tending.Unlock()
	return l.strains[path]
}
