package core

import (
	"fmt"
	"strings"
	"time"

	"hccl.dev/hccl/core/boot"
)

// unanswered is the error for ranks whose hosts have acknowledged nothing on any rail for HCCL_PEER_TIMEOUT, though something waits for
// them: who waits has told all others of its operation. Ranks that are stopped or late do not count, as their hosts acknowledge.
func (c *Comm) unanswered(waited time.Duration) error {
	if c.net == nil || waited < c.settings.PeerTimeout {
		return nil
	}
	var ranks []int
	var ways []string
	for r := range c.n {
		if c.fars[r] == nil || c.fars[r].Stuck() < c.settings.PeerTimeout {
			continue
		}
		ranks = append(ranks, r)
		ways = append(ways, fmt.Sprintf("rank %d from %s", r, c.wayTo(r)))
	}
	if ranks == nil {
		return nil
	}
	return failf(RemoteError, "rank %d gave up after %.1f s in %s: nothing that it sends to %s arrives (%s). See whether the host is up and "+
		"the network leads there, or raise HCCL_PEER_TIMEOUT (%v) to ride out longer outages", c.rank, waited.Seconds(), c.doing(), list(ranks),
		strings.Join(ways, "; "), c.settings.PeerTimeout).of(ranks...)
}

// wayTo are the ends of the first connection to rank r.
func (c *Comm) wayTo(r int) string {
	local, remote := c.fars[r].Ends()
	if name := boot.InterfaceOf(local); name != "" {
		return fmt.Sprintf("%v on %s to %v", local, name, remote)
	}
	return fmt.Sprintf("%v to %v", local, remote)
}
