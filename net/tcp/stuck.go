package tcp

import "time"

// Stuck is for how long nothing has moved on any rail to a rank, though something is to be sent; 0 while anything moves, and where nothing
// is to be sent. A peer that is stopped or slow to read does not count.
func (f *Fabric) Stuck(rank int) time.Duration { return time.Duration(f.peers[rank].stuck.Load()) }

// Spare is the number of a rail that may be laid beside those to a rank which stand still, -1: none is free. The ends take numbers of
// their own, from above: those of rails between interfaces begin below.
func (f *Fabric) Spare(rank int) int {
	k := MaxRails - 1
	if f.me > rank {
		k--
	}
	for ; k >= 0; k -= 2 {
		if !f.Alive(rank, k) {
			return k
		}
	}
	return -1
}

// ponder notes for how long all rails of p have stood still.
func (p *peer) ponder(now time.Time, moving bool, still *[MaxRails]*conn) {
	var since time.Time
	for _, c := range still {
		if c != nil && c.pulse.since.After(since) {
			since = c.pulse.since
		}
	}
	if moving || since.IsZero() {
		p.stuck.Store(0)
	} else {
		p.stuck.Store(int64(now.Sub(since)))
	}
}
