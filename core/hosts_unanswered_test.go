package core

import (
	"strings"
	"testing"

	"hccl.dev/hccl/internal/testkit/netns"
)

// A host that answers no more ends the operation on all ranks after HCCL_PEER_TIMEOUT, with no other limit set; a stopped process does
// not, as its host answers.
func TestHostAnswersNoMore(t *testing.T) {
	l := hosts(t, 2)
	rail := l.Rail()
	ranks := onHosts(t, l, []int{0, 1}, 100_000, "HCCL_PEER_TIMEOUT=1")
	tell(ranks, 1_000_000)
	reads(t, ranks[0], 0, 5)
	l.Silence(1, rail, true)
	for r, c := range ranks {
		line := c.line()
		for strings.HasPrefix(line, "sum ") {
			line = c.line()
		}
		for _, fact := range []string{"HCCL_PEER_TIMEOUT (1s)", "nothing that it sends to rank " + itoa(1-r), "on " + netns.Device(rail)} {
			if !strings.HasPrefix(line, "error") || !strings.Contains(line, fact) {
				t.Errorf("rank %d: %s\nlacks %q", r, line, fact)
			}
		}
	}
}
