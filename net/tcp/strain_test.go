package tcp

import (
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What holds a socket back is told from what the kernel counts.
func TestWhatHoldsASocketBack(t *testing.T) {
	const bytes = 2_500_000 // in a tenth of a second
	for name, c := range map[string]struct {
		info unix.TCPInfo // what came within the tick, beside bytes
		want bool
	}{
		"the network":            {unix.TCPInfo{Busy_time: 100_000, Notsent_bytes: 1e6}, true},
		"nearly always":          {unix.TCPInfo{Busy_time: 92_000, Notsent_bytes: 1}, true},
		"the processor":          {unix.TCPInfo{Busy_time: 70_000, Notsent_bytes: 1e6}, false},
		"all is on its way":      {unix.TCPInfo{Busy_time: 100_000}, false},
		"the reader":             {unix.TCPInfo{Busy_time: 100_000, Rwnd_limited: 40_000, Notsent_bytes: 1e6}, false},
		"the buffer that is set": {unix.TCPInfo{Busy_time: 100_000, Sndbuf_limited: 40_000, Notsent_bytes: 1e6}, false},
		"a bound that was set":   {unix.TCPInfo{Busy_time: 100_000, Notsent_bytes: 1e6, Max_pacing_rate: 10 * bytes}, false},
		"less than that":         {unix.TCPInfo{Busy_time: 100_000, Notsent_bytes: 1e6, Max_pacing_rate: 20 * bytes}, true},
	} {
		var d load
		at := time.Unix(1e9, 0)
		before := unix.TCPInfo{Busy_time: 9e6, Rwnd_limited: 1e6, Sndbuf_limited: 1e6, Bytes_acked: 7e9, Max_pacing_rate: math.MaxUint64}
		d.look(&before, at)
		now := before
		now.Busy_time, now.Rwnd_limited, now.Sndbuf_limited = now.Busy_time+c.info.Busy_time, now.Rwnd_limited+c.info.Rwnd_limited,
			now.Sndbuf_limited+c.info.Sndbuf_limited
		now.Bytes_acked, now.Notsent_bytes = now.Bytes_acked+bytes, c.info.Notsent_bytes
		if c.info.Max_pacing_rate > 0 {
			now.Max_pacing_rate = c.info.Max_pacing_rate
		}
		if d.look(&now, at.Add(100*time.Millisecond)); d.pressed != c.want || d.gained != bytes {
			t.Errorf("%s: held back %v, with %d bytes", name, d.pressed, d.gained)
		}
		if d.look(&now, at.Add(101*time.Millisecond)); d.past != 100*time.Millisecond {
			t.Errorf("a look right behind another one counts: %v", d.past)
		}
	}
}

// A path is held back where half of its rails are, and has what all of them carried.
func TestStrainOfAPath(t *testing.T) {
	nodes := railed(t, 2, 1, loopback)
	l := nodes[0].links[1]
	for socket := range 2 {
		lay(t, nodes, 0, 1, Rail(0, 1+socket), loopback)
	}
	now := time.Now()
	for held := range 4 {
		before := l.Strain(0)
		for socket := range 3 {
			l.rails[Rail(0, socket)].Load().pulse.load = load{at: now, pressed: socket < held, past: time.Second, gained: 1000}
		}
		l.strain(now)
		want := Strain{}
		if held >= 2 {
			want = Strain{time.Second, 3000}
		}
		if got := l.Strain(0).Less(before); got != want {
			t.Errorf("with %d of 3 held back: %v, wanted %v", held, got, want)
		}
	}
}
