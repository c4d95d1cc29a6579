package core

import (
	"errors"
	"fmt"
	"strings"

	"hccl.dev/hccl/internal/log"
	"hccl.dev/hccl/net/tcp"
)

// mostTold is how many ranks a line names by their rails.
const mostTold = 16

// tellRails says what each rail to other hosts has carried.
func (c *Comm) tellRails() {
	var texts []string
	more := 0
	for r := range c.n {
		switch {
		case r == c.rank || !c.remote(r):
		case len(texts) == mostTold:
			more++
		default:
			texts = append(texts, fmt.Sprintf("rank %d %s", r, railTexts(c.net.Rails(r))))
		}
	}
	if more > 0 {
		texts = append(texts, fmt.Sprintf("and to %d more", more))
	}
	if texts != nil {
		c.log.Info(log.Net, "communicator %s: sent to %s", c.label(), strings.Join(texts, "; "))
	}
}

func railTexts(rails []tcp.RailState) string {
	var texts []string
	for _, s := range rails {
		text := fmt.Sprintf("%.1f MB by rail %d", float64(s.Sent)/1e6, s.Rail)
		if s.Direct > 0 {
			text += fmt.Sprintf(" (%.1f MB without a copy)", float64(s.Direct)/1e6)
		}
		if s.Rate > 0 {
			text += fmt.Sprintf(" (%.1f MB/s of late)", float64(s.Rate)/1e6)
		}
		if !s.Alive {
			text += ", which has failed"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// railLost is told when a rail to rank r failed and others go on.
func (c *Comm) railLost(r, rail int, err error) {
	if cause := errors.Unwrap(err); cause != nil { // of a peer's end it would say more than is known
		err = cause
	}
	c.log.Warn("communicator %s: rail %d to rank %d failed, others take its place: %v", c.label(), rail, r, err)
}
