package boot

import (
	"fmt"
	"net/netip"
)

// Member is how to reach another rank of ranks that know each other.
type Member struct {
	Rank  int
	Addrs []netip.AddrPort
	Key   Key // of its inbox
}

// Gather is one more exchange, among ranks that have met: it returns what every rank of n gave as mine, in rank order. at tells how to
// reach the ranks; inbox is this rank's, and must know the secret that theirs know. purpose sets the connections apart from all others
// of that inbox; all ranks call with the same. Its errors are those of Meet.
func Gather(inbox *Inbox, purpose uint8, rank, n int, at func(rank int) Member, mine []byte, lim Limit) ([][]byte, error) {
	if len(mine) > MaxBlob {
		return nil, &ArgumentError{fmt.Sprintf("rank %d with %d bytes to tell: at most %d", rank, len(mine), MaxBlob)}
	}
	m := &meeting{circle: circleOf(rank, n, 1), rank: rank, lim: lim, inbox: inbox, purpose: purpose, most: MaxBlob,
		key: configured().Key}
	var partners []partner
	for step := 1; step < n; step *= 2 {
		to := at((rank + step) % n)
		partners = append(partners, partner{to.Rank, contact{to.Key, to.Addrs}})
	}
	x, err := m.begin(partners)
	if err != nil {
		return nil, err
	}
	defer x.close()
	return x.gather(mine)
}
